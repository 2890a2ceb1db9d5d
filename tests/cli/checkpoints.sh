#!/bin/bash
# Checkpoints in recordings: each one is the memory that a replay from the start has there, with both ways of tracking; both
# readers say the same of them; info, pack, unpack, rm and ls know them; SIGKILL of the controller leaves them right.
. "$(dirname "$0")/expect.sh"
reprise=$REPRISE
export REPRISE_DIR=$PWD/recordings
program=$BUILD/guest/mem_changes
dense="--checkpoint-interval 0.003 --debug ckpt-stretch=0"

# seek to every checkpoint, from it or from the start
states() { sed 's/^/seek /; s/$/\nstate/' places | timeout 100 "$reprise" walk "$@" latest 2>&1; }

# whether the kernel lets us have a userfaultfd (containers' filters often do not)
has_uffd() { /usr/bin/python3 -c 'import ctypes, sys; sys.exit(ctypes.CDLL(None).syscall(323, 0x80001) < 0)'; }

tracks=mprotect
has_uffd && tracks="uffd mprotect"
for track in $tracks; do
    expect 0 '' "$reprise" record $dense --debug track=$track -- "$program" 20000
    "$program" 20000 | cmp -s - out || wrong "$track: other output than natively"
    expect 0 '' "$reprise" walk latest <<<stored
    "$reprise" walk latest <<<stored >places
    [ "$(wc -l <places)" -ge 3 ] || wrong "$track: only $(wc -l <places) checkpoints"
    states >restored
    states --from-start >replayed
    grep -q '^memory' replayed || wrong "$track: nothing replayed: $(head -2 replayed)"
    cmp -s restored replayed || wrong "$track: restored is not what was replayed: $(diff restored replayed | head -4)"
    expect 0 '' "$reprise" replay -a
    "$reprise" dump --checkpoints >ours || wrong "$track: dump --checkpoints fails"
    /usr/bin/python3 "$TESTS/../tools/read_log.py" --checkpoints "$REPRISE_DIR/latest" >theirs || wrong "$track: the second reader: damaged"
    cmp -s ours theirs || wrong "$track: the readers differ: $(diff ours theirs | head -2)"
done

# along with the recording
left=$(wc -l <ours)
"$reprise" info | grep -q "^checkpoints  *[0-9]* taken, $left kept, " || wrong "info: $("$reprise" info | grep checkpoints)"
expect 0 '' "$reprise" pack -o packed
expect 0 '' "$reprise" unpack packed -o again
"$reprise" dump --checkpoints again | cmp -s - ours || wrong "other checkpoints after packing"
/usr/bin/python3 "$TESTS/../tools/read_log.py" --pack packed | grep -q '^file ckpt-0.data' || wrong "the second reader finds no files in the pack"
expect 0 '' "$reprise" rm again
[ ! -e again ] || wrong "rm leaves $(ls again)"

# damage: told, and the rest is used
name=$(cd "$REPRISE_DIR/latest" && ls ckpt-0.*-* | sort -t. -k2 -n | tail -1)
printf X | dd of="$REPRISE_DIR/latest/$name" bs=1 seek=200 conv=notrunc status=none
expect 125 "reprise: $name*" "$reprise" dump --checkpoints
[ "$(wc -l <out)" = $((left - 1)) ] || wrong "damage of one: $(wc -l <out) of $left are left"
"$reprise" info >out 2>err || wrong "info fails because of a damaged checkpoint"
expect 0 '' "$reprise" replay -a

# killed in the middle
for i in 1 2 3 4; do
    "$reprise" record -o killed $dense -- "$program" 100000 >out 2>err </dev/null &
    controller=$!
    sleep 0.$((4 + RANDOM % 5))
    runtime=$(pgrep -P $controller | head -1)
    kill -KILL $controller $runtime 2>/dev/null
    wait $controller 2>/dev/null
    if ls killed/ckpt-* >/dev/null 2>&1; then
        "$reprise" dump --checkpoints killed >out 2>err || wrong "kill $i: $(cat err)"
    fi
    rm -rf killed
done
finish
