#!/bin/bash
# Where recordings go, what they are called, who may read them.
. "$TESTS/cli/fake.sh"
expect 0 '' $record true events 1 64
expect 0 '' $record /bin/true events 1 64
expect 0 '' $record cat events 1 64
for f in rd/true-0 rd/true-1 rd/cat-0 rd/store; do
    [ "$(stat -c %a $f)" = 700 ] || wrong "$f: mode $(stat -c %a $f)"
done
[ "$(stat -c %a rd/true-0/log)" = 600 ] || wrong "mode of the log is $(stat -c %a rd/true-0/log)"
[ "$(readlink rd/latest)" = cat-0 ] || wrong "latest is $(readlink rd/latest)"
rm -r rd/true-0
expect 0 '' $record true events 1 64
[ -f rd/true-0/log ] || wrong "the first free number was not taken"

expect 0 '' $record -o here/and/there true events 2 64
[ -f here/and/there/log ] || wrong "-o: no log"
[ "$(readlink rd/latest)" = "$PWD/here/and/there" ] || wrong "-o: latest is $(readlink rd/latest)"
expect 0 '' $replay
said 'stream 0: 2 events, ended'
mkdir empty && expect 0 '' $record -o empty true events 3 64
expect 125 'reprise: here/and/there: cannot record there: *not empty*' $record -o here/and/there true
: >file && expect 125 'reprise: file: cannot record there: *' $record -o file true
expect 125 'reprise: /proc/x: cannot record there: *' $record -o /proc/x true
expect 0 '' $replay empty
said 'stream 0: 3 events, ended'
expect 0 '' $replay ./here/and/there
expect 0 '' $replay true-1
said 'stream 0: 1 events, ended'
expect 125 'reprise: no recording *nothing*' $replay nothing

expect 0 '' env -u REPRISE_DIR HOME="$PWD/home" $record true events 4 64
[ -f home/.local/share/reprise/true-0/log ] || wrong "HOME: no log"
expect 0 '' env -u REPRISE_DIR HOME="$PWD/home" $replay
said 'stream 0: 4 events, ended'
if [ "$(id -u)" = 0 ]; then # a user whose home nobody knows
    cp "$REPRISE" . && chmod 755 . # another user may not reach the checkout
    expect 125 'reprise: *REPRISE_DIR*' setpriv --reuid=54321 --clear-groups env -u REPRISE_DIR -u HOME ./reprise record true
fi
expect 0 '' env REPRISE_DIR=relative $record true events 5 64
[ -f relative/true-0/log ] || wrong "relative REPRISE_DIR: no log"
expect 0 '' env REPRISE_DIR=relative $replay

# Nothing came to pass: nothing is left.
expect 127 'reprise: no-such-command: not found' $record no-such-command
expect 125 'reprise: cannot start the runtime /nonexistent/rt: *' env REPRISE_RT=/nonexistent/rt $record true
expect 126 '' $record head exit 126
[ "$(ls -d rd/head* rd/no-such* rd/true-2 2>/dev/null)" = '' ] || wrong "left behind: $(ls rd)"
mkdir mine && expect 126 '' $record -o mine true exit 126
[ -d mine ] && [ -z "$(ls mine)" ] || wrong "-o: $(ls mine) is left behind, or the user's directory is gone"

# A store that others may write to is none.
mkdir -p open/store && chmod 777 open/store
expect 125 'reprise: *open/store: *others may write*' env REPRISE_DIR="$PWD/open" $record true
[ -z "$(ls open | grep -v store)" ] || wrong "an unusable store: $(ls open)"

# Many at once: each gets its own.
for i in $(seq 12); do $record true events 10 64 & done
wait
[ "$(ls -d rd/true-* | wc -l)" = 14 ] || wrong "$(ls -d rd/true-* | wc -l) recordings, not 14"
finish
