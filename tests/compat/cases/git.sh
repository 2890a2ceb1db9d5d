# needs: git
# tags: fast
# git: commits, merges, rebase, gc, clone
export GIT_AUTHOR_DATE=@1700000000 GIT_COMMITTER_DATE=@1700000000 GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
$RUN git init -q -b main r; cd r
for i in 1 2 3; do seq $((i * 30)) >f; echo $i >g$i; $RUN git add .; $RUN git commit -qm "c $i"; done
$RUN git checkout -qb side HEAD~1; echo side >h; $RUN git add h; $RUN git commit -qm side; $RUN git merge -q -m merged main; $RUN git log --oneline --graph
$RUN git diff --stat HEAD~2; $RUN git gc -q; $RUN git fsck; cd ..; $RUN git clone -q r c; cd c; $RUN git log --format='%H %s' | head -2; $RUN git grep -n 7 f | head -2; $RUN git blame -s f | tail -1; $RUN git checkout -q nothing 2>/dev/null; echo "status $?"
