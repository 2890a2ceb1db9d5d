#!/bin/bash
# Runs the instruction tests natively and translated and compares what they print, line by line.
#   REPRISE  the reprise to test (default build/reprise); TRANSLATE replaces "$REPRISE run --" altogether
#   BUILD    the build directory (default build)
#   DEAD     set to "compare": what code leaves below rsp counts, too (calls and returns differ there: README.md)
# A program that dies under translation is started again behind the case it died of.
# Tests named in `known` may differ, for the reasons given there.
# Exit status: 0 all equal, 1 differences, 2 the tests themselves are broken.
set -u
here=$(cd "$(dirname "$0")" && pwd)
BUILD=${BUILD:-build}
REPRISE=${REPRISE:-$BUILD/reprise}
TRANSLATE=${TRANSLATE:-$REPRISE run --}
asm=$BUILD/asm
dead=-d; [ "${DEAD:-}" != compare ] || dead=
shown=${SHOW:-10}  # differences spelled out per program
deaths=10          # after that many, the rest counts as failed
"$here/build.sh" "$BUILD" || exit 2
tmp=$(mktemp -d "$asm/run.XXXXXX") || exit 2
trap 'rm -rf "$tmp"' EXIT
passed=0 failed=0 most=0
$TRANSLATE /bin/true || { echo "cannot run /bin/true under: $TRANSLATE"; exit 2; }

# native PROG ARGS...: output to $tmp/native; twice, because a test that is not deterministic tests nothing.
native() {
    "$@" >"$tmp/native" 2>"$tmp/native.err" || { echo "$*: fails natively: $(head -1 "$tmp/native.err")"; exit 2; }
    "$@" >"$tmp/again" 2>/dev/null
    cmp -s "$tmp/native" "$tmp/again" || { echo "$*: two native runs differ"; diff "$tmp/native" "$tmp/again" | head -5; exit 2; }
}

# translated PROG ARGS...: output to $tmp/translated; the forms programs go on behind a case that kills them.
translated() {
    local first=0 died=0 status
    : >"$tmp/translated"
    while :; do
        timeout 120 $TRANSLATE "$@" -f $first >"$tmp/part" 2>"$tmp/err"
        status=$?
        cat "$tmp/part" >>"$tmp/translated"
        [ $status -eq 0 ] && return
        first=$(awk -v next_one=$first 'f == 1 { next_one = $1 + 1 } f == 2 && $1 >= next_one { print $1; exit }' \
            f=1 "$tmp/part" f=2 "$tmp/native")
        [ -n "$first" ] || return
        echo "$first died: status $status: $(tail -1 "$tmp/err")" >>"$tmp/translated"
        died=$((died + 1))
        first=$((first + 1))
        [ $died -lt $deaths ] || { echo "$*: died $died times, gave up at case $first"; return; }
    done
}

# What kinds of differences there are, and in which instructions: "state 2: runs instead of signal 11".
summarize() {
    awk 'file == 1 { bad[$1]; next }
         file == 2 { for (i = 2; i <= NF; i++) native[$1, i] = $i; count[$1] = NF; next }
         file == 3 && $1 in bad {
             for (i = 2; i <= NF || i <= count[$1]; i++) {
                 a = native[$1, i]; b = $i
                 if (a == b) continue
                 sub(/\+[0-9]*@/, "@", a); sub(/\+[0-9]*@/, "@", b)
                 fa = a ~ /:/ ? "signal " substr(a, 1, index(a, "@") - 1) : "a result"
                 fb = $2 == "died:" ? "death" : b ~ /:/ ? "signal " substr(b, 1, index(b, "@") - 1) : b == "" ? "nothing" : "a result"
                 kind[$1] = fa == fb ? "other state after " fa : fb " instead of " fa
                 break
             }
             seen[$1]; next
         }
         file == 4 { split($0, c, "\t") } file == 4 && c[1] in bad {
             k = c[1] in seen ? kind[c[1]] : "not reached"
             n[k]++; split(c[2], w, " ")
             if (!((k, w[1]) in had) && length(which[k]) < 90) { which[k] = which[k] " " w[1]; had[k, w[1]] }
         }
         END { for (k in n) printf "    %6d %s:%s\n", n[k], k, which[k] }' \
        file=1 "$tmp/bad" file=2 "$tmp/native" file=3 "$tmp/translated" file=4 "$asm/cases.txt" | sort -rn
}

# compare NAME PROG ARGS...: counts, and shows the first cases that differ with text, bytes and registers.
compare() {
    local name=$1; shift
    local total bad
    native "$@"
    translated "$@"
    total=$(wc -l <"$tmp/native")
    awk 'f == 1 { got[$1] = $0 } f == 2 && got[$1] != $0 { print $1 }' f=1 "$tmp/translated" f=2 "$tmp/native" >"$tmp/bad"
    bad=$(wc -l <"$tmp/bad")
    awk -F'[ \t]' 'f == 1 { ran[$1] = 1; known[$1] = $2 !~ /^4\// }
         f == 2 && $1 in ran { split($0, c, "\t")
             if (c[2] == "sequence") seq++; else { all[c[2]]; if (known[$1]) here[c[2]] } }
         END { print length(all), length(here), seq + 0 }' f=1 "$tmp/native" f=2 "$asm/cases.txt" >"$tmp/forms"
    read -r forms known sequences <"$tmp/forms"
    printf '%s: %d forms compared (%d run on this CPU, the others are unknown to it) in %d cases, %d of them sequences; %d differ\n' \
        "$name" "$forms" "$known" "$total" "$sequences" "$bad"
    [ "$known" -le "$most" ] || most=$known
    passed=$((passed + total - bad)) failed=$((failed + bad))
    [ $bad -eq 0 ] || summarize
    head -$shown "$tmp/bad" | while read -r n; do
        awk -F'\t' -v n="$n" '$1 == n { printf "  case %d: %s   [%s]  form %s\n", n, $3, $4, $2 }' "$asm/cases.txt"
        grep "^$n died" "$tmp/translated" | sed 's/^/    /'
        "$@" -v "$n" >"$tmp/v1" 2>&1
        timeout 10 $TRANSLATE "$@" -v "$n" >"$tmp/v2" 2>&1
        diff "$tmp/v1" "$tmp/v2" | grep '^[<>]' | grep -v "^[<>] $n " | head -8 | sed 's/^/    /'
    done
}

# compare_flow NAME PROG ARGS...: the hand-written tests; those that differ (or all, if it died) once more, each on its own.
compare_flow() {
    local name=$1 bad=0 total t status
    shift
    : >"$tmp/known"
    native "$@"
    timeout 60 $TRANSLATE "$@" >"$tmp/translated" 2>"$tmp/err"
    total=$("$@" -l | wc -l)
    if cmp -s "$tmp/native" "$tmp/translated"; then
        : >"$tmp/bad"
    else
        "$@" -l | while read -r t; do
            grep "^$t\( \|\$\)" "$tmp/native" >"$tmp/v1"
            grep "^$t\( \|\$\)" "$tmp/translated" >"$tmp/v2"
            cmp -s "$tmp/v1" "$tmp/v2" && continue
            timeout 10 $TRANSLATE "$@" "$t" >"$tmp/v2" 2>"$tmp/err"
            status=$?
            cmp -s "$tmp/v1" "$tmp/v2" && [ $status -eq 0 ] && continue
            [ $status -eq 0 ] && grep -q "^$t " "$here/known" && echo "$t" >>"$tmp/known" && continue
            echo "  $t"
            [ $status -eq 0 ] || echo "    died: status $status: $(tail -1 "$tmp/err")"
            diff "$tmp/v1" "$tmp/v2" | grep '^[<>]' | head -8 | sed 's/^/    /'
        done >"$tmp/bad"
    fi
    bad=$(grep -c '^  [^ ]' "$tmp/bad")
    printf '%s: %d hand-written tests compared, %d differ, %d more as known\n' "$name" "$total" "$bad" "$(wc -l <"$tmp/known")"
    passed=$((passed + total - bad)) failed=$((failed + bad))
    [ "$bad" -eq 0 ] || sed -n 's/^  \([^ ]*\)$/\1/p' "$tmp/bad" | tr '\n' ' ' | fold -s -w 110 | sed 's/^/    /; $a\'
    awk -v max="$shown" '/^  [^ ]/ { n++ } n <= max' "$tmp/bad"
}

compare forms-static "$asm/forms-static" $dead
compare forms-pie "$asm/forms-pie" $dead
compare forms-jit "$asm/forms-static" $dead -j

compare_flow flow-static "$asm/flow-static" $dead
compare_flow flow-pie "$asm/flow-pie" $dead

echo "$most forms compared"
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
