#!/bin/bash
# make demo: records a program with a bug, replays it, and finds the cause of the crash, which lies far before it.
BUILD=${BUILD:-build}
reprise=$BUILD/reprise
program=$BUILD/demo/ledger
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
export REPRISE_DIR=$dir/recordings

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
show() { echo "\$ $*"; }
fail() { echo "$*" >&2; exit 1; }

"$program" --make "$dir/payments" || fail "cannot write $dir/payments"
say "A ledger that crashes in its audit: who broke it, when, and why?"
show reprise record -- ledger payments
"$reprise" record -- "$program" "$dir/payments"
status=$?
echo "(status $status)"
[ $status = 139 ] || fail "it should have died of SIGSEGV"

say "The recording holds all of it, and repeats it exactly:"
show reprise replay -a
"$reprise" replay -a
[ $? = $status ] || fail "THE REPLAY ENDED DIFFERENTLY"
show reprise ps
"$reprise" ps

if ! command -v gdb >/dev/null; then
    say "gdb is not installed: without it, the register that the crash went through:"
    show "reprise why -n 3 '\$rdi'"
    timeout 120 "$reprise" why -n 3 '$rdi'
    exit
fi
say "In gdb, at the crash. The owner's name is a wrong pointer; where did it come from?"
cat >"$dir/commands" <<'S'
set pagination off
frame function audit
print a->owner
why -n 3 a->owner
S
sed 1d "$dir/commands" | sed 's/^/(reprise) /'
echo
timeout 120 "$reprise" replay -e -x "$dir/commands" -- -batch >"$dir/out" 2>&1
sed -n '/^\$1/,$p' "$dir/out"
grep -q 'book () at ' "$dir/out" && grep -q "an input: read(.*offset 42672 of \"$dir/payments\"" "$dir/out" || {
    tail -20 "$dir/out" >&2
    fail "THE CAUSE WAS NOT FOUND"
}
say "A clerk's thread, long before: book() wrote a payment behind the 31 days, where the owner's name was."
echo "It is payment 2667 of the file, 42672 / 16, and it is of the 32nd:"
show "od -A d -t d8 -j 42672 -N 8 payments; od -A d -t d4 -j 42680 -N 8 payments"
od -A d -t d8 -j 42672 -N 8 "$dir/payments"
od -A d -t d4 -j 42680 -N 8 "$dir/payments"
