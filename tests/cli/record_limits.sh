#!/bin/bash
# Hard resource limits: recording makes do with what they leave, or says so in one line. And more processes than there are
# rings for: those that start wait for those that end, and all are recorded.
. "$TESTS/cli/expect.sh"
export REPRISE_DIR=$PWD/rec XDG_CACHE_HOME=$PWD/xdg HOME=$PWD
mkdir xdg && chmod 777 . xdg
cp "$REPRISE" "$(dirname "$REPRISE")/reprise-rt" . && REPRISE=$PWD/reprise # another user may not reach the checkout
plain() { # with privilege a hard limit is none
    if [ "$(id -u)" = 0 ]; then setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; else "$@"; fi
}
under() { # under LIMIT COMMAND...
    local limit=$1
    shift
    plain bash -c 'ulimit $0 && exec "$@"' "$limit" "$@"
}
cat >many.sh <<'SH'
i=0
while [ $i -lt 60 ]; do (sleep 0.2; /bin/true) & i=$((i + 1)); done
wait
echo "$i of them"
SH
record() { expect "$1" "$2" under "$3" "$REPRISE" record -- "${@:4}"; }
replay() {
    expect 0 '' plain "$REPRISE" replay -a
    [ "$(cat out)" = "$1" ] || wrong "replay: $(head -3 out), not $1"
}
# files: the runtime has four of its own
for limit in '-n 256' '-n 64' '-n 20' '-Sn 12'; do
    record 0 '' "$limit" sh -c 'echo hello; ulimit -Sn'
    [ "$(cat out)" = "hello
${limit#* }" ] || wrong "ulimit $limit: $(cat out)"
    expect 0 '' plain "$REPRISE" replay -a
    expect 0 '' under "$limit" "$REPRISE" replay -a
    [ "$(sed 1d out)" = "${limit#* }" ] || wrong "ulimit $limit, replayed: $(cat out)"
done
cat >many_files.py <<'PY'
import os, sys
for i in range(300): os.set_inheritable(os.open("/dev/null", 0), True)
os.execv(sys.argv[1], sys.argv[1:])
PY
count='ls /proc/self/fd | wc -l'
expect 0 '' plain /usr/bin/python3 many_files.py /bin/sh -c "$count"
mv out natively
expect 0 '' plain /usr/bin/python3 many_files.py "$REPRISE" record -o files -- /bin/sh -c "$count"
cmp -s natively out || wrong "many files: $(cat out), not $(cat natively)"
for limit in '-f 8000' '-v 500000' '-v 300000'; do
    record 0 '' "$limit" /bin/echo hello
    [ "$(cat out)" = hello ] || wrong "ulimit $limit: $(cat out)"
    replay hello
done
record 0 '' '-f 24000' sh many.sh
[ "$(cat out)" = '60 of them' ] || wrong "many: $(cat out)"
replay '60 of them'
[ "$(plain "$REPRISE" ps | grep -c true)" = 60 ] || wrong "not all processes were recorded: $(plain "$REPRISE" ps | wc -l)"
record 125 'reprise: the limits of file sizes * leave no room for shared memory' '-f 2000' /bin/echo hello

# a file that is too large to be kept: said when it is recorded, and again by the replay, which lacks it
head -c 20000000 /dev/urandom >big
record 0 'reprise: cannot keep the contents of a mapped file */big: File too large' '-f 8000' /usr/bin/python3 -S -E -c \
    'import mmap; f = open("big"); print(len(mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ)))'
expect 0 'reprise: this recording has not the contents of a file of 20000000 bytes *' plain "$REPRISE" replay -a

# without what is executed there is nothing to repeat
{ cat /bin/echo && head -c 20000000 /dev/zero; } >grown && chmod +x grown
record 0 'reprise: cannot keep the contents of a mapped file */grown: File too large' '-f 8000' ./grown hello
expect 125 'reprise: this recording cannot be replayed: it has not the contents of a file of * bytes that is executed*' plain timeout 20 "$REPRISE" replay -a
finish
