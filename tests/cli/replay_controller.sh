#!/bin/bash
# The controller of a replay: which recording, on which machine, what it says when it cannot or when the runtime fails.
. "$TESTS/cli/fake.sh"
expect 125 'reprise: no recording*' $replay
expect 7 '' $record true events 100 64 end 1792
expect 7 '' $replay
said 'stream 0: 100 events, ended'
expect 7 '' "$REPRISE" replay --autopilot --verify --no-cache true-0
expect 7 '' $replay -- true-0
for bad in --nonsense '-g' '-g x' '-s 70000' '-p x' '--debug x' 'a b' '-- a b'; do
    $replay $bad >out 2>err
    [ $? = 125 ] && grep -q '^usage: reprise replay' err || wrong "replay $bad: $(head -1 err)"
done
expect 125 'reprise: diverged' $replay --debug diverge=1
expect 125 'reprise: no stream 1' $replay --debug streams=2
expect 125 'reprise: cannot start the runtime *' env REPRISE_RT=/nonexistent/rt $replay
printf '#!/bin/sh\nkill -SEGV $$\n' >rt && chmod +x rt
expect 125 'reprise: a replaying process was killed by signal 11' env REPRISE_RT=./rt $replay
printf '#!/bin/sh\nexit 0\n' >rt
expect 7 '' env REPRISE_RT=./rt $replay # the end says so

# The options that the runtime gets.
printf '#!/bin/sh\necho "$2" >options; shift 2; echo "$*" >args\nexit 0\n' >rt
expect 7 '' env REPRISE_RT=./rt $replay --verify --debug x=y
grep -q "store=$PWD/rd/store,verify=1,x=y,mode=replay,chanfd=[0-9]*,stream=0" options || wrong "options: $(cat options)"
grep -q "seed=$(facts latest seed)," options || wrong "options: seed is not the recorded one"
[ "$(cat args)" = '/bin/true -- true events 100 64 end 1792' ] || [ "$(cat args)" = '/usr/bin/true -- true events 100 64 end 1792' ] ||
    wrong "arguments: $(cat args)"

# Other processors. The header is in the first frame, stored as it is; tools of the same format write another one.
cat >other_cpu.py <<'PY'
import ctypes.util, json, os, struct, subprocess, sys
to, change = sys.argv[1], sys.argv[2]
log = open("rd/true-0/log", "rb").read()
raw = struct.unpack_from("<I", log, 24)[0]
head, text, rest = log[:48], log[48:48 + raw], log[48 + raw:]
header = json.loads(text)
exec(change)
text = json.dumps(header).encode()
import ctypes
xxh = ctypes.CDLL("libxxhash.so.0").XXH3_64bits
xxh.restype, xxh.argtypes = ctypes.c_uint64, [ctypes.c_char_p, ctypes.c_size_t]
head = head[:24] + struct.pack("<IIQ", len(text), len(text), xxh(text, len(text)))
head += struct.pack("<Q", xxh(head, len(head)))
os.makedirs(to)
open(to + "/log", "wb").write(head + text + rest)
PY
if python3 other_cpu.py same 'pass' 2>/dev/null; then
    expect 7 '' $replay ./same
    python3 other_cpu.py more 'header["cpu"]["flags"] += ["avx9000", "warp"]'
    expect 125 'reprise: this processor lacks what the recorded one had: avx9000 warp *' $replay ./more
    python3 other_cpu.py vendor 'header["cpu"]["vendor"] = "Acme"'
    expect 7 'reprise: warning: recorded on a processor of Acme*' $replay ./vendor
    python3 other_cpu.py bare 'header = {"version": 1}'
    expect 125 'reprise: the recording does not say which command it is of' $replay ./bare
    python3 other_cpu.py odd 'header["command"] = [1, 2]'
    expect 125 'reprise: the recording does not say which command it is of' $replay ./odd
fi

# Children that we had before are none of the replay's; SIGCHLD may be ignored.
began=$SECONDS
(sleep 20 >/dev/null 2>&1 & exec $replay) >out 2>err
[ $? = 7 ] && [ ! -s err ] || wrong "a child from before: $(cat err)"
[ $((SECONDS - began)) -lt 15 ] || wrong "a child from before was waited for"
for verb in 'record true end 1792' 'replay -a'; do
    python3 -c 'import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])' \
        "$REPRISE" $verb >out 2>err
    [ $? = 7 ] || wrong "$verb with SIGCHLD ignored: $(cat err)"
done

# Ctrl-C: everything ends.
printf '#!/bin/sh\necho here; exec sleep 20\n' >rt
python3 - "$REPRISE" <<'PY' || wrong "Ctrl-C"
import os, signal, subprocess, sys
p = subprocess.Popen([sys.argv[1], "replay", "-a"], env=dict(os.environ, REPRISE_RT="./rt"), stdout=subprocess.PIPE)
p.stdout.readline()
os.kill(p.pid, signal.SIGINT)
p.wait()
sys.exit(p.returncode != -signal.SIGINT or len(p.stdout.read()) > 0) # nobody has the pipe any more
PY
# A terminal gets progress, which is gone at the end.
printf '#!/bin/sh\nsleep 2.6\n' >rt
script -qec "env REPRISE_RT=./rt $replay" /dev/null </dev/null >tty 2>&1
[ $? = 7 ] && grep -q 'replaying, 0 %' tty && tail -c 5 tty | grep -q "$(printf '\033\\[K')" || wrong "progress: $(cat -v tty)"
finish
