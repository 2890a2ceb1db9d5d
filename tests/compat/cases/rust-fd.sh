# needs: fdfind
# tags: fast
# fd: a Rust program with threads that executes others
mkdir -p a/b/c; touch a/1.txt a/b/2.txt a/b/c/3.md; $RUN fdfind --color never . a | sort; $RUN fdfind -e txt . a -x echo found {/} | sort; $RUN fdfind -j2 -e md . a -X wc -c; $RUN fdfind nothing a; echo "status $?"
