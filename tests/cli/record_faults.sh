#!/bin/bash
# Sudden deaths, nonsense in a ring, full disks: the program goes on or ends as it would, what was recorded can be replayed.
. "$TESTS/cli/fake.sh"
events() { sed -n 's/^stream 0: \([0-9]*\) events.*/\1/p' out; } # that the replay had

# Nonsense in a ring: the stream ends there, and its writer never waits.
for how in garbage wild; do
    expect 5 'reprise: stream 0 is damaged: the rest of it is not recorded' \
        timeout 20 $record true events 10 64 sleep 100 $how events 3000 4096 end 1280
    expect 5 '' $replay
    said 'stream 0: 10 events, cut'
done
expect 0 'reprise: stream 1 is damaged: *' timeout 20 $record true events 10 64 child events 5 64 sleep 100 garbage events 3000 4096
expect 0 '' $replay
said 'stream 0: 10 events, ended'

# Deaths at any moment: of the program, of the controller, of both.
cat >deaths.py <<'PY'
import os, random, signal, subprocess, sys, time
reprise, whom = sys.argv[1:]
c = subprocess.Popen([reprise, "record", "true", "file", "/bin/true", "events", "100", "256", "slow", "20000", "4096", "100"],
                     stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
time.sleep(random.random() * random.choice((0.02, 1)))
try:
    child = int(open(f"/proc/{c.pid}/task/{c.pid}/children").read().split()[0])
except IndexError:
    child = 0
if whom in ("controller", "both"):
    os.kill(c.pid, signal.SIGKILL)
if whom in ("program", "both") and child:
    try:
        os.kill(child, signal.SIGKILL)
    except ProcessLookupError:
        pass
c.wait()
print(-c.returncode if child or whom == "controller" else 9)
PY
for i in 1 2 3; do
    for whom in program controller both; do
        rm -rf rd/true-*
        [ "$(python3 deaths.py "$REPRISE" $whom)" = 9 ] || [ "$whom" = program ] || wrong "death of $whom: did not die"
        until_true 10 test -z "$(pgrep -f "$fake.*chanfd" -P 1)"
        [ -f rd/true-0/log ] || continue # before its time
        [ -s rd/true-0/log ] || continue
        "$REPRISE" info true-0 >out 2>&1
        grep -q ^state out || wrong "death of $whom: $(head -2 out)"
        { $replay true-0 >out 2>err; } 2>/dev/null
        got=$?
        grep -q "^stream 0: " out || [ "$(facts true-0 streams)" = 0 ] || wrong "death of $whom: exit $got, $(head -2 err)"
        case $whom/$got in
            program/137 | program/0 | controller/125 | both/125) ;;
            *) wrong "death of $whom: replay exits with $got: $(head -2 err)" ;;
        esac
    done
done

# The size limit.
expect 3 'reprise: recording stopped: the log has reached * (--limit); the program goes on' \
    $record --limit 256K true events 20000 4096 end 768
expect 125 'reprise: the recording stops here*' $replay
[ "$(events)" -gt 100 ] && [ "$(events)" -lt 20000 ] || wrong "limit: $(cat out)"
[ "$(stat -Lc %s rd/latest/log)" -lt 600000 ] || wrong "limit: the log has $(stat -Lc %s rd/latest/log) bytes"
[ "$(facts latest reason)/$(facts latest status)" = limit/768 ] || wrong "limit: end says $(facts latest reason)"

# Little room on the disk.
expect 3 'reprise: recording stopped: less than * left on the disk of *; the program goes on' \
    env REPRISE_MIN_FREE=999999999999999 $record true events 20000 4096 end 768
[ "$(facts latest reason)" = disk ] || wrong "little room: end says $(facts latest reason)"

# The output directory is removed.
$record true events 10 64 sleep 200 events 200 4096 sleep 600 end 768 >out 2>err &
until_true 5 test -f rd/latest/log
sleep 0.1
rm -rf rd
wait $!
[ $? = 3 ] && [ ! -s err ] || wrong "removed directory: $(cat err)"

# A full disk.
mkdir small
if mount -t tmpfs -o size=1M none small 2>/dev/null; then
    expect 3 'reprise: recording stopped: cannot write */log: No space left on device; the program goes on' \
        env REPRISE_MIN_FREE=0 $record -o small/full true events 60000 4096 end 768
    expect 125 'reprise: the recording stops here*' $replay small/full
    [ "$(events)" -gt 100 ] || wrong "full disk: $(cat out)"
    rm -rf small/full
    expect 3 'reprise: recording stopped: *; the program goes on' $record -o small/full true slow 60000 4096 1 end 768
    expect 125 'reprise: the recording stops here*' $replay small/full
    rm -rf small/full
    expect 0 'reprise: cannot keep the contents of a mapped file */big: No space left on device' \
        env REPRISE_MIN_FREE=0 REPRISE_DIR="$PWD/small/base" sh -c 'head -c 3000000 /dev/urandom >big; exec $0 record true file big events 3 64' "$REPRISE"
    umount small
fi
finish
