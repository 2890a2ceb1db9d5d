#!/bin/bash
# A process that is not recorded changes a small file that the program has mapped for reading: what was read is in the recording.
. "$TESTS/cli/expect.sh"
export REPRISE_DIR=$PWD/recordings

# tell SECONDS WHICH...: sets what the program waits for, so long after it says so
tell() {
    local seconds=$1 which
    shift
    for which; do
        for ((k = 0; k < 600; k++)); do
            grep -q "waits for $which" told && break
            sleep 0.05
        done
        sleep $seconds
        "$BUILD/shared/outsider" word $which
    done
}

# check OPTION...: the program is recorded while somebody tells it things; so it is replayed
check() {
    timeout 60 "$REPRISE" record "$@" -o rd -- "$BUILD/shared/outsider" word >told 2>err || wrong "record $*: $? $(cat err)"
    wait
    [ "$(grep -c 'is there' told)" = 6 ] || wrong "record $*: $(cat told)"
    timeout 60 "$REPRISE" replay -a rd >out 2>err || wrong "replay $*: $? $(cat err)"
    cmp -s told out || wrong "replay $*: $(diff told out | head -3)"
}

for option in --check --chaos; do
    : >told
    tell 0.1 0 1 2 3 4 5 &
    check $option
    rm -rf rd
done

# checkpoints: what is told at once would only make the log longer
for i in 0 1; do "$BUILD/shared/outsider" word $i; done
: >told
tell 0.4 2 3 4 5 &
check --checkpoint-interval 0.1
"$REPRISE" dump rd | grep -q CHECKPOINT || wrong 'no checkpoint'
timeout 100 "$REPRISE" replay -a --verify rd >out 2>err || wrong "verify: $? $(cat err)"

# who never stops: what is seen of the page while it is lent does not change
for option in --check --chaos; do
    : >counted
    "$BUILD/shared/outsider" counted count &
    expect 0 '' timeout 60 "$REPRISE" record $option -o rc -- "$BUILD/shared/outsider" counted follow 2000
    wait
    mv out told
    expect 0 '' timeout 60 "$REPRISE" replay -a --verify rc
    cmp -s told out || wrong "follow $option: $(diff told out | head -3)"
    rm -rf rc
done

# what somebody stored behind the end of a file, in its last page: only who maps the file sees it
cat >behind.py <<'PY'
import ctypes, mmap, os, sys
is_recorded = sys.argv[1].isdigit()
fd = int(sys.argv[1]) if is_recorded else os.memfd_create("behind", 0)
if not is_recorded: os.truncate(fd, 8)
memory = mmap.mmap(fd, 8)
there = ctypes.addressof(ctypes.c_char.from_buffer(memory)) + 100
if is_recorded:
    print(ctypes.string_at(there).decode())
else:
    ctypes.memmove(there, b"behind the end", 15)
    os.execv(sys.argv[1], sys.argv[1:] + ["/usr/bin/python3", sys.argv[0], str(fd)])
PY
expect 0 '' /usr/bin/python3 behind.py "$REPRISE" record -o behind --
[ "$(cat out)" = 'behind the end' ] || wrong "behind the end: $(cat out)"
expect 0 '' "$REPRISE" replay -a behind
[ "$(cat out)" = 'behind the end' ] || wrong "behind the end, replayed: $(cat out)"
finish
