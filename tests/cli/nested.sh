#!/bin/bash
# Reprise inside of Reprise: either it works, or it is refused at once; what is recorded can be replayed.
. "$TESTS/cli/expect.sh"
export REPRISE_DIR=$PWD/recordings
program=(/bin/sh -c 'echo $0 $1; exit 3' x y)

# nested STATUS OUTPUT COMMAND...
nested() {
    local status=$1 output=$2
    shift 2
    expect "$status" '' timeout -s KILL 30 "$REPRISE" "$@"
    [ "$(cat out)" = "$output" ] || wrong "$*: says '$(cat out)'"
}

nested 3 'x y' run -- "$REPRISE" run -- "${program[@]}"
nested 3 'x y' run -- "$REPRISE" record -o inner -- "${program[@]}"
nested 3 'x y' replay -a inner
nested 3 'x y' run -- "$REPRISE" replay -a inner
nested 3 'x y' record -o outer -- "$REPRISE" run -- "${program[@]}" # records the program
nested 3 'x y' replay -a outer

# A runtime of another build is recognised, too.
mkdir other && cp "$BUILD/reprise" "$BUILD/reprise-rt" other
nested 3 'x y' run -- other/reprise run -- "${program[@]}"
nested 3 'x y' record -o another -- other/reprise run -- "${program[@]}"
nested 3 'x y' replay -a another

# refused VERB...: inside of a recording
refused() {
    timeout -s KILL 30 "$REPRISE" record -o refused -- "$REPRISE" "$@" >out 2>err
    [ $? = 125 ] && grep -q 'inside of a recording' err && [ ! -s out ] || wrong "$*: $(cat out err)"
    timeout -s KILL 30 "$REPRISE" replay -a refused >out 2>err2
    [ $? = 125 ] && grep -q 'cannot start the runtime' err2 || wrong "replay of $*: $(cat out err2)"
    rm -rf refused
}
refused record -o within -- "${program[@]}"
[ ! -e within ] || wrong "there is a recording of nothing: $(ls within)"
refused replay -a inner
finish
