#!/bin/bash
# Lookup tables are kept like translations: later processes with the same libraries map them, others never get them.
. "$TESTS/cli/kept.sh"
run() { "$REPRISE" run --debug cachelimit=524288 -- "$@"; }
program='/bin/bash -c echo${IFS}six'
tables() { find "$dir" -name '????????????????' -size 3076k; }
misses() { # of returns, jumps and calls, in the tables
    "$REPRISE" run --debug stats=1 -- "$@" 2>&1 >/dev/null | sed -n 's/.*missed returns \([0-9]*\), jumps \([0-9]*\), calls \([0-9]*\)/\1 + \2 + \3/p'
}
set -f
same $program
truncate -s 400M "$dir/0123456789abcdef" # in a directory that is full of other things, too
for i in $(seq 12); do
    same $program
    [ -n "$(tables)" ] && break
done
[ "$(tables | wc -l)" = 1 ] || wrong "$(tables | wc -l) tables, not 1, after $i runs"
same $program
with=$(($(misses $program)))
first=$(tables)
mv "$first" away
without=$(($(misses $program)))
[ $((with + without / 4)) -lt $without ] || wrong "$with misses with kept tables, $without without"
mv away "$first"
same $program

# a program with other libraries has its own, and does not take those of the first one
other="/usr/bin/perl -e print(join(q(,),sort(map{\$_*7}1..9)))"
for i in $(seq 12); do
    same $other
    [ "$(tables | wc -l)" -gt 1 ] && break
done
[ "$(tables | wc -l)" = 2 ] || wrong "$(tables | wc -l) tables, not 2, after $i runs"
second=$(tables | grep -v "$first")
cp "$first" "$second"
same $other
cp "$second" "$first" 2>/dev/null
same $program

# where there is no room for more of them, that is looked for once a minute, not by each process: it takes as long as a short one
looks() { strace -f -c "$REPRISE" run --debug cachelimit=524288 -- $program 2>&1 >/dev/null | awk '$NF ~ /^(newfstatat|fstatat64)$/ { print $4 }'; }
if command -v strace >/dev/null; then
    rm -f $(tables)
    rm -f "$dir/0123456789abcdef"
    for i in $(seq 300 350); do truncate -s 3076k "$dir/0000000000000$i"; done
    for i in $(seq 500); do : >"$dir/0000000000001$((i + 100))"; done
    for i in $(seq 12); do same $program; done
    [ -e "$dir/full" ] || wrong "nobody notes that there is no room"
    n=$(looks)
    [ "$n" -lt 400 ] || wrong "$n files are looked at though there was no room a moment ago"
    touch -d '2 minutes ago' "$dir/full"
    n=$(looks)
    [ "$n" -gt 500 ] || wrong "$n files are looked at after two minutes"
    rm -f "$dir"/0000000000000* "$dir"/0000000000001* "$dir/full"
fi

# many at once, while they are made and taken away
gives() { # gives WHAT COMMAND...
    local got
    got=$(run "${@:2}" 2>&1)
    [ "$got" = "$1" ] || echo "${*:2}: $got" >>"$PWD/bad"
}
for i in $(seq 40); do
    gives six $program &
    gives 14,21,28,35,42,49,56,63,7 $other &
    [ $((i % 5)) = 0 ] && rm -f $(tables)
    [ $((i % 4)) = 0 ] && wait
done
wait
[ ! -s bad ] || wrong "many at once: $(head -3 bad)"
finish
