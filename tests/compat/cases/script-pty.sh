# needs: script
# tags: fast
# util-linux: script (a pseudo terminal, signalfd), flock, setsid, getopt, hexdump
$RUN script -qec 'echo in a terminal; test -t 1 && echo yes; exit 4' log </dev/null >out; echo "status $?"; tr -d "\r" <out; $RUN flock lock sh -c 'echo locked'; $RUN setsid -w sh -c 'exit 3'; echo "status $?"; $RUN getopt -o ab: -- -a -b x y; echo abc | $RUN hexdump -C; $RUN rev <<<abc; $RUN lscpu >/dev/null; echo "status $?"
