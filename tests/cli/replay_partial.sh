#!/bin/bash
# A replay that cannot repeat everything says so and does not end as if it had: of recordings that were stopped, of damaged ones, and
# where there is no room for the output.
. "$TESTS/cli/expect.sh"
export REPRISE_DIR=$PWD/recordings

same_or_refused() { # same_or_refused RECORDING WHAT
    timeout 50 "$REPRISE" replay -a "$1" >out 2>err
    local status=$?
    if [ $status = 3 ]; then
        cmp -s out told || wrong "$2: ends like the program, but is not all of it: $(cat out err)"
    elif [ $status != 125 ] || ! grep -q '^reprise: ' err; then
        wrong "$2: status $status, $(cat err)"
    else
        refused=$((refused + 1))
    fi
}

cat >program.sh <<'SH'
echo first
for i in 1 2 3; do ls -d /; done
exit 3
SH
refused=0
for limit in 5 6 7 8 9 10 12 14; do
    "$REPRISE" record --limit ${limit}K -o stopped-$limit -- sh program.sh >told 2>said
    [ $? = 3 ] || wrong "a limit of $limit KB: $(cat said)"
    grep -q 'recording stopped' said || continue
    "$REPRISE" info stopped-$limit 2>/dev/null | grep -q '^state  *stopped (limit)' || wrong "info: $("$REPRISE" info stopped-$limit | grep state)"
    same_or_refused stopped-$limit "stopped at $limit KB"
done
[ $refused -gt 0 ] || wrong 'nothing was cut'

"$REPRISE" record -o whole -- sh program.sh >told
refused=0
size=$(stat -c %s whole/log)
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do
    rm -rf damaged && cp -r whole damaged
    printf '\\%o' $((i * 13 % 256)) >byte
    printf "$(cat byte)" | dd of=damaged/log bs=1 seek=$((size * i / 17)) conv=notrunc status=none
    same_or_refused damaged "damaged at $((size * i / 17)) of $size"
done
[ $refused -gt 3 ] || wrong "only $refused of 16 damages were noticed"

"$REPRISE" replay -a whole >/dev/full 2>err
[ $? = 125 ] && grep -q '^reprise: cannot repeat all of the output: No space left on device$' err || wrong "to a full device: $(cat err)"
"$REPRISE" replay -a whole 2>err | :
[ ${PIPESTATUS[0]} = 3 ] && ! [ -s err ] || wrong "nobody reads: $(cat err)"
finish
