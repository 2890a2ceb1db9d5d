#!/bin/sh
# Unknown options and verbs: one line that says what, the usage, all on stderr, and 125.
. "$TESTS/cli/expect.sh"
refused() {
    local words=$1 got
    shift
    "$REPRISE" "$@" >out 2>err </dev/null
    got=$?
    [ $got = 125 ] || wrong "reprise $*: exit $got, not 125"
    [ ! -s out ] || wrong "reprise $*: writes to stdout"
    head -1 err | grep -q "^reprise: .*$words" || wrong "reprise $*: first line is '$(head -1 err)'"
    grep -q '^usage: reprise' err || wrong "reprise $*: no usage"
}
refused ''
refused "'--nonsense'" --nonsense
refused "'nonsense'" nonsense
refused "'nonsense'" help nonsense
refused "'--nonsense'" run --nonsense /bin/true
refused "'-'" run - /bin/true
refused 'no command' run
refused 'no command' run --
refused 'no command' run --no-cache
refused 'KEY=VALUE' run --debug
refused 'KEY=VALUE' run --debug nonsense /bin/true
refused 'needs a size' record --limit 0 /bin/true
expect 125 'reprise: cannot start the runtime /nonexistent/rt: *' env REPRISE_RT=/nonexistent/rt "$REPRISE" run /bin/true

# Options end at the command: these belong to it.
expect 0 '' "$REPRISE" run echo --no-cache --help --nonsense
[ "$(cat out)" = "--no-cache --help --nonsense" ] || wrong "options of the command were taken: $(cat out)"
expect 0 '' "$REPRISE" run --no-cache -- echo -- x
[ "$(cat out)" = "-- x" ] || wrong "-- of the command was taken: $(cat out)"
finish
