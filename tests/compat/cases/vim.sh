# needs: vim
# tags: fast
# vim, batch mode
printf 'one\ntwo\nthree\n' >f; $RUN vim -u NONE -es -c '%s/o/0/g' -c 'normal! Go four' -c 'g/t/m0' -c 'wq' f; cat f; $RUN vim -u NONE -es -c 'let s = 0 | for i in range(1, 5000) | let s += i % 7 | endfor | call writefile([s, strftime("%Y", 0)], "o")' -c 'cq 3'; echo "status $?"; cat o
