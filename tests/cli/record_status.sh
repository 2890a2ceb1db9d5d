#!/bin/bash
# What the program gets and how it ends is as without us; messages are ours alone.
. "$TESTS/cli/fake.sh"
for fd in $(ls /proc/self/fd); do [ "$fd" -lt 3 ] || [ "$fd" = 255 ] || eval "exec $fd<&-"; done
for n in 0 1 7 124 125 126 127 255; do expect $n '' $record true events 1 64 end $((n << 8)); done
for s in TERM KILL HUP SEGV ABRT USR1 PIPE INT QUIT; do
    expect $((128 + $(kill -l $s))) '' $record true events 1 64 kill $(kill -l $s)
done
expect 3 '' $record true events 1 64 exit 3
expect 0 '' $record true fds
said '0 1 2 '
exec 5</dev/null 7</dev/null
expect 0 '' $record true fds
said '0 1 2 5 7 '
exec 5<&- 7<&-
(exec <&-; $record true fds >fds) && [ "$(cat fds)" = '1 2 ' ] || wrong "stdin closed: $(cat fds)"
(exec 2>&-; $record true fds >fds) && [ "$(cat fds)" = '0 1 ' ] || wrong "stderr closed: $(cat fds)"
(exec >&-; $record true events 5 64 end 512) 2>err
[ $? = 2 ] && [ ! -s err ] || wrong "stdout closed: $(cat err)"
cmp -s <(head -c4 rd/latest/log) <(printf RPF1) || wrong "stdout closed: no log"
A=5 expect 0 '' $record true env A
said 5
(ulimit -n 40; $record true fds) >fds && [ "$(cat fds)" = '0 1 2 ' ] || wrong "ulimit -n: $(cat fds)"
(ulimit -Sf 1; $record true events 100 4096) 2>err || wrong "ulimit -Sf: $(cat err)"
[ ! -s err ] || wrong "ulimit -Sf: $(cat err)"
[ "$(facts latest raw)" = $((100 * 4096 + 32)) ] || wrong "ulimit -Sf: $(facts latest raw) bytes"

# A hard limit that the channel does not fit into: one line, unless we may raise it.
for limit in '-f 200' '-v 500000'; do
    (ulimit $limit; $record true events 100 64) >out 2>err
    case $? in
        0) [ ! -s err ] || wrong "ulimit $limit: $(cat err)" ;;
        125) grep -q '^reprise: .* shared memory' err && [ "$(wc -l <err)" = 1 ] || wrong "ulimit $limit: $(cat err)" ;;
        *) wrong "ulimit $limit: $(cat err)" ;;
    esac
done

expect 0 '' $record --cpu v2 --chaos --check true events 1 64
[ "$(facts latest chaos)/$(facts latest check)" = True/True ] || wrong "header: chaos and check"
facts latest cpu | grep -q "'level': 'v2'" && ! facts latest cpu | grep -q avx || wrong "header: $(facts latest cpu)"
expect 0 '' $record -- true say -- say --help
said $'--\n--help'
cat >words.py <<'PY'
import json, subprocess, sys
args = [b"true", b"say", b"a b", b"say", b"", b"say", b"quote\" back\\ new\nline", b"say", b"\xff\xfe\xc3(", b"say", "ü€".encode()]
subprocess.run([sys.argv[1], "record", *args], check=True, stdout=subprocess.DEVNULL)
info = json.loads(subprocess.run([sys.argv[1], "info", "--json"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout)
got = [w.encode("utf-8", "surrogateescape") for w in info["header"]["command"]]
sys.exit(0 if got == args else f"{got}")
PY
python3 words.py "$REPRISE" || wrong "command in the header"
for bad in '--cpu v9' '--cpu' '--limit x' '--limit' '-o' '--debug x' '--nonsense' ''; do
    $record $bad >out 2>err
    [ $? = 125 ] && grep -q '^usage: reprise record' err || wrong "record $bad: $(head -1 err)"
done
finish
