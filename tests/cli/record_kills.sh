#!/bin/bash
# SIGKILL of the program, of the controller, or of both, at random moments: the recording opens and replays up to where it was
# cut; a program that has lost its controller goes on to its end. KILLS: how often (12; `make soak` takes 100).
. "$(dirname "$0")/expect.sh"
reprise=$REPRISE
export REPRISE_DIR=$PWD/recordings
mkdir -p recordings
cat >work.sh <<'S'
for i in $(seq 40); do echo "$i $RANDOM $(echo "child $i")"; done
echo done
S
is_prefix() { cmp -s <(head -c "$(stat -c %s "$2")" "$1") "$2"; } # is file $2 the beginning of file $1?

for ((i = 0; i < ${KILLS:-12}; i++)); do
    rm -rf rec out
    "$reprise" record -o rec -- bash work.sh >out 2>err </dev/null &
    controller=$!
    sleep 0.0$((RANDOM % 10))$((RANDOM % 10))
    [ $((RANDOM % 3)) = 0 ] && sleep 0.2
    program=$(pgrep -P $controller -f reprise-rt | head -1)
    [ -n "$program" ] || program=$(pgrep -P $controller | head -1)
    case $((i % 3)) in
    0) victims=$program ;;
    1) victims=$controller ;;
    2) victims="$controller $program" ;;
    esac
    [ -n "$victims" ] && kill -KILL $victims 2>/dev/null
    wait $controller
    status=$?
    # a program that goes on alone: until it has ended
    for ((k = 0; k < 200; k++)); do [ -n "$program" ] && [ -d /proc/$program ] && ! grep -q ' Z ' /proc/$program/stat 2>/dev/null || break; sleep 0.05; done
    [ $k -lt 200 ] || wrong "kill $i of $victims: the program hangs"
    if [ $((i % 3)) = 1 ] && [ -n "$program" ] && ! grep -q '^done' out; then wrong "kill $i: the program did not go on: $(tail -1 out)"; fi
    [ -e rec/log ] || continue # killed before there was anything
    timeout 20 "$reprise" info rec >info 2>&1 || grep -q 'no whole frame\|empty' info || wrong "kill $i: info fails: $(head -2 info)"
    timeout 60 "$reprise" replay -a rec >again 2>again.err </dev/null
    replayed=$?
    grep -q 'diverged\|internal error' again.err && wrong "kill $i: $(grep -m1 'diverged\|internal' again.err)"
    is_prefix out again || wrong "kill $i (status $status, replayed $replayed): other output: $(diff out again | head -3)"
    [ $replayed -lt 124 ] || [ $replayed = 125 ] || [ $replayed = 137 ] || wrong "kill $i: replay ends with $replayed: $(head -1 again.err)"
done
finish
