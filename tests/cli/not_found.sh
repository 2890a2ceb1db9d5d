#!/bin/sh
# Which file a command is, and what is said when there is none: 127 not found, 126 not executable.
. "$TESTS/cli/expect.sh"
run="$REPRISE run --"
expect 127 'reprise: no-such-command: not found' $run no-such-command
expect 127 'reprise: ./no-such-file: not found' $run ./no-such-file
expect 127 'reprise: /nonexistent/x: not found' $run /nonexistent/x
expect 127 'reprise: /etc/passwd/x: not found' $run /etc/passwd/x
expect 127 'reprise: : not found' $run ''
expect 127 'reprise: ls: not found' env PATH=/nonexistent "$REPRISE" run ls
expect 126 'reprise: /etc: is a directory' $run /etc

echo 'echo hi' >plain
expect 126 'reprise: ./plain: *' $run ./plain
mkdir bin other
cp plain bin/tool
expect 126 'reprise: tool: *' env PATH="$PWD/bin" "$REPRISE" run tool
mkfifo fifo && chmod +x fifo
expect 126 'reprise: ./fifo: *' $run ./fifo
ln -s loop loop
expect 126 'reprise: ./loop: *' $run ./loop
expect 126 'reprise: /bin/true: too many open files*' bash -c 'ulimit -n 4; exec "$@"' - $run /bin/true

# A file that may not be executed does not hide one further down the path; an empty entry is the current directory.
printf '#!/bin/sh\necho "found $0"\n' >other/tool
chmod +x other/tool
expect 0 '' env PATH="$PWD/bin:$PWD/other:/bin" "$REPRISE" run tool
[ "$(cat out)" = "found $PWD/other/tool" ] || wrong "PATH lookup: $(cat out)"
cp other/tool tool
expect 0 '' env PATH=":/bin" "$REPRISE" run tool
[ "$(cat out)" = "found tool" ] || wrong "empty PATH entry: $(cat out)"
finish
