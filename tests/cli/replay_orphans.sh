#!/bin/bash
# A replay whose controller is killed leaves nobody behind: processes that wait for their stream to be opened, either.
. "$TESTS/cli/expect.sh"
export REPRISE_DIR=$PWD/rd
"$REPRISE" record -- sh -c 'echo here; i=0; while [ $i -lt 400 ]; do : & i=$((i + 1)); done; wait' >out 2>err || wrong "record: $(cat err)"
python3 - "$REPRISE" <<'PY' || wrong "somebody was left"
import os, select, signal, subprocess, sys, time
ours, theirs = os.pipe()
p = subprocess.Popen([sys.argv[1], "replay", "-a"], stdout=subprocess.PIPE, pass_fds=[theirs])
os.close(theirs)
p.stdout.readline()
p.send_signal(signal.SIGSTOP) # from here on nobody opens streams
time.sleep(1)
p.kill()
p.wait()
sys.exit(not select.select([ours, p.stdout], [], [], 30)[0] or not all(select.select([f], [], [], 30)[0] for f in (ours, p.stdout)))
PY
finish
