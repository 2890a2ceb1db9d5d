# For the record_*.sh scripts: the controller with a runtime that runs nothing (fake_rt.c says what it understands).
. "$TESTS/cli/expect.sh"
fake=$BUILD/fake_rt
[ -x "$fake" ] || { echo "no $fake"; exit 1; }
REPRISE_RT=$fake
REPRISE_DIR=$PWD/rd
export REPRISE_RT REPRISE_DIR
record="$REPRISE record"
replay="$REPRISE replay -a"
# said TEXT: what the last expect wrote to stdout.
said() { [ "$(cat out)" = "$1" ] || wrong "says '$(head -3 out)', not '$1'"; }
# facts RECORDING KEY: a member of the header or the end.
facts() {
    "$REPRISE" info --json "$1" 2>/dev/null | python3 -c '
import json, sys
info, key = json.load(sys.stdin), sys.argv[1]
for part in (info["end"] or {}, info["header"], info):
    if key in part:
        print(part[key])
        break' "$2"
}
# until SECONDS COMMAND: tries again until it is true.
until_true() {
    local end=$(($(date +%s) + $1))
    shift
    until "$@"; do
        [ "$(date +%s)" -lt $end ] || return 1
        sleep 0.02
    done
}
