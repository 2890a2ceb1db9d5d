#!/bin/bash
# Checkpoints of a recording: at each of them, and some steps behind it, all registers and memory are the same whether it is
# reached by a restore or by a replay from the start; so is the end. --verify compares what is stored. A store that is damaged, or gone, costs time alone.
set -u
. "${0%/*}/restores.sh"

for how in crash abort exit fork filter file secret twice guard; do
    timeout 60 "$REPRISE" record --checkpoint-interval 0.1 -o "rd/$how" -- "$BUILD/replay/states" $how 0.8 >out 2>&1
    [ $? -ne 77 ] || continue # a kernel without memfd_secret(), or without guards
    timeout 60 "$REPRISE" replay -a --verify "$how" >again 2>&1
    [ $? -ne 125 ] || wrong "$how: $(tail -1 again)"
    compare $how 2
done
compare fork 1 -p "$("$REPRISE" ps fork | awk 'NR == 3 { print $1 }')"
# a tracee, whose threads are stopped most of the time, and its tracer
timeout 100 "$REPRISE" record --debug ckpt-stretch=0 --checkpoint-interval 0.1 -o rd/traced -- "$BUILD/replay/tracer" "$BUILD/replay/states" exit 1.5 >out 2>&1
grep -q "^exited" out || wrong "traced: $(cat out)"
timeout 60 "$REPRISE" replay -a --verify traced >again 2>&1 || wrong "traced: $(tail -1 again)"
for pid in $("$REPRISE" ps traced | awk 'NR > 1 { print $1 }'); do compare traced 1 -p "$pid"; done
timeout 100 "$REPRISE" record --debug ckpt-stretch=0 --checkpoint-interval 0.1 -o rd/python -- /usr/bin/python3 -c '
import time
x, i = {}, 0
while i % 1000 or time.process_time() < 1.2:
    x[i % 5000] = str(i)
    i += 1
print(len(x))' >out 2>&1
compare python 2
for js in luajit node; do
    command -v $js >/dev/null || continue
    case $js in
    luajit) script=(-e 'local t, k = {}, 0 while os.clock() < 1.2 do k = k + 1 for i = 1, 100000 do t[i] = (t[i] or 0) + i % k end end print(#t)') ;;
    node) script=(-e 'let m = new Map(); for (let i = 0; i % 1000 || performance.now() < 1500; i++) m.set("k" + i % 5000, i); console.log(m.size)') ;;
    esac
    timeout 100 "$REPRISE" record --debug ckpt-stretch=0 --checkpoint-interval 0.1 -o rd/$js -- $js "${script[@]}" >out 2>&1
    compare $js 1
done

# --verify: checkpoints of another run, in the middle of this one
cp -r rd/exit rd/mixed
rm rd/mixed/ckpt-*
timeout 60 "$REPRISE" record --checkpoint-interval 0.1 -o rd/other -- "$BUILD/replay/states" exit 0.5 more >out 2>&1
cp rd/other/ckpt-* rd/mixed
timeout 60 "$REPRISE" replay -a --verify mixed >out 2>&1
[ $? = 125 ] || wrong "--verify: checkpoints of another run pass: $(cat out)"
timeout 60 "$REPRISE" replay -a --verify other >out 2>&1
[ $? != 125 ] || wrong "--verify: $(cat out)"

# packed, with them and without
"$REPRISE" pack -o with.pack exit && "$REPRISE" pack --no-checkpoints -o without.pack exit
REPRISE_DIR=$PWD/with "$REPRISE" unpack with.pack >/dev/null 2>&1 && ls with/exit | grep -q '^ckpt-' || wrong "pack loses checkpoints"
REPRISE_DIR=$PWD/none "$REPRISE" unpack without.pack >/dev/null 2>&1 || wrong "unpack: without checkpoints"
ls none/exit | grep -q '^ckpt-' && wrong "pack --no-checkpoints has some"

# the prompt at the end: info, none, damage
"$REPRISE" info crash >out 2>&1
grep -q '^checkpoints  *[0-9]* taken' out || wrong "info: $(cat out)"
"$REPRISE" record --checkpoint-interval none -o rd/without -- "$BUILD/replay/states" exit 0.3 >out 2>&1
ls rd/without | grep -q ckpt && wrong "--checkpoint-interval none takes some"
printf '%s\n' end state | timeout 60 "$REPRISE" walk crash >whole 2>&1
for f in rd/crash/ckpt-*.data; do dd if=/dev/urandom of="$f" bs=4096 count=8 seek=2 conv=notrunc 2>/dev/null; done
printf '%s\n' end state | timeout 60 "$REPRISE" walk crash >damaged 2>err
cmp -s whole damaged || wrong "damaged checkpoints: $(cat damaged err)"
"$REPRISE" rm crash >out 2>&1 && [ ! -e rd/crash ] || wrong "rm: $(cat out)"
exit $bad
