#!/bin/sh
# Help and version go to stdout and are no failure; only what works is listed.
. "$TESTS/cli/expect.sh"
for args in --help -h help 'help run' 'run --help' 'run -h'; do
    expect 0 '' "$REPRISE" $args
    grep -q '^usage: reprise' out || wrong "$args: no usage on stdout"
done
expect 0 '' "$REPRISE" --version
grep -qE '^reprise [0-9]+\.[0-9]+' out || wrong "--version says: $(cat out)"

"$REPRISE" --help | sed -n '/^Verbs:/,/^$/s/^  \([a-z]*\) .*/\1/p' >verbs
grep -qx run verbs || wrong "help does not list run"
while read -r verb; do
    [ "$verb" = help ] || expect 0 '' "$REPRISE" "$verb" --help
done <verbs
finish
