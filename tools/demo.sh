#!/bin/bash
# make demo: records a program with a bug, replays it, and walks back from the crash to its cause.
BUILD=${BUILD:-build}
reprise=$BUILD/reprise
program=$BUILD/demo/ledger
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
export REPRISE_DIR=$dir

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
show() { echo "\$ $*"; }

say "A ledger that crashes in its audit: who broke it, and when?"
show reprise record -- $program
"$reprise" record -- "$program"
status=$?
echo "(status $status)"
[ $status = 139 ] || { echo "it should have died of SIGSEGV" >&2; exit 1; }

say "The recording holds all of it, and repeats it exactly:"
show reprise replay -a
"$reprise" replay -a
[ $? = $status ] || { echo "THE REPLAY ENDED DIFFERENTLY" >&2; exit 1; }
show reprise ps
"$reprise" ps

command -v gdb >/dev/null || { say "gdb is not installed: the rest of the demo needs it."; exit 0; }
say "In gdb, at the crash. The pointer is wrong; going back to where it was written:"
cat >"$dir/commands" <<'S'
set pagination off
frame function main
print accounts[i].owner
watch -l accounts[i].owner
reverse-continue
backtrace 2
S
sed 's/^/(gdb) /' "$dir/commands" | sed 1d
echo
timeout 120 "$reprise" replay -e -x "$dir/commands" -- -batch >"$dir/out" 2>&1
sed -n '/^\$1/,$p' "$dir/out"
if grep -q 'clerk (arg=0x2)' "$dir/out"; then
    say "A clerk, long before: book() wrote to day 31 of 31, which is where the owner's name was."
else
    echo "THE CAUSE WAS NOT FOUND" >&2
    tail -20 "$dir/out" >&2
    exit 1
fi
