# For the cache_*.sh scripts: kept translations in a directory of the test's own.
. "$TESTS/cli/expect.sh"
XDG_CACHE_HOME=$PWD/xdg
export XDG_CACHE_HOME
mkdir -p "$XDG_CACHE_HOME"
dir=$XDG_CACHE_HOME/reprise
run() { "$REPRISE" run -- "$@"; }
# How many blocks a run translates: few if it finds its images.
translated() { "$REPRISE" run --debug trace=1 -- "$@" 2>&1 >/dev/null | grep -c '^reprise: block '; }
# is_warm COMMAND: everything but a little is found.
is_warm() {
    local n
    n=$(translated "$@")
    [ "$n" -lt 100 ] || wrong "$*: $n blocks translated, images are not used"
}
is_cold() {
    local n
    n=$(translated "$@")
    [ "$n" -ge 100 ] || wrong "$*: only $n blocks translated, where do they come from?"
}
# The pause: files that changed a moment ago are not kept.
warm_up() { sleep 0.05; for i in 1 2 3; do run "$@" >/dev/null 2>&1; done; }
# same COMMAND: prints what it prints natively, and nothing else, with the same status.
same() {
    local status
    "$@" >native.out 2>native.err </dev/null
    status=$?
    run "$@" >run.out 2>run.err </dev/null
    [ $? = $status ] || wrong "$*: status differs"
    cmp -s native.out run.out || wrong "$*: output differs: $(head -3 run.out)"
    cmp -s native.err run.err || wrong "$*: stderr differs: $(head -3 run.err)"
}
