#!/bin/bash
# Walks on timelines of processes that share memory: each of them is replayed alone, there and back, and at random.
set -u
moves=${1:-40}
. "${0%/*}/walks.sh"
for name in gdb/shares:inherited gdb/shares:memfd gdb/shares:calls shared/files shared/threads shared/sysv shared/killed shared/code shared/private shared/rewritten \
    guest/jit_dual guest/mem_file_calls; do
    t=${name#*/}
    "$REPRISE" record -o "rd/$t" -- "$BUILD/${name%:*}" $(case $name in *:*) echo "${name#*:}" ;; esac) >/dev/null 2>&1
    walk "$t" "$name" $("$REPRISE" ps "$t" | awk 'NR > 1 && NR < 5 {print $1}')
done
# Without checkpoints the log does not have what pages held, and it is gathered. What is kept of that and does not fit is made anew;
# where nothing can be kept it works, too.
for name in gdb/shares:calls shared/files; do
    t=gathered-${name#*/}
    "$REPRISE" record --checkpoint-interval none -o "rd/$t" -- "$BUILD/${name%:*}" $(case $name in *:*) echo "${name#*:}" ;; esac) >/dev/null 2>&1
    walk "$t" "$name" $("$REPRISE" ps "$t" | awk 'NR > 1 && NR < 5 {print $1}')
done
[ -s rd/gathered-files/pages ] || { echo "what processes share is not kept"; bad=1; }
[ ! -e rd/files/pages ] || { echo "what the log has is gathered"; bad=1; }
printf x | dd of=rd/gathered-files/pages bs=1 seek=5000 conv=notrunc 2>/dev/null
echo end | "$REPRISE" walk gathered-files >out 2>&1 || { echo "damaged pages: $(tail -4 out)"; bad=1; }
exit $bad
