# For the scripts beside this one: expect STATUS 'PATTERN' COMMAND...
# The command ends with STATUS and its stderr is exactly one line that matches the shell pattern ('' means: no line).
failures=0
wrong() {
    echo "$*"
    failures=$((failures + 1))
}
expect() {
    local want=$1 pattern=$2 got
    shift 2
    "$@" >out 2>err </dev/null
    got=$?
    [ $got = "$want" ] || wrong "$*: exit $got, not $want: $(head -3 err)"
    if [ -z "$pattern" ]; then
        [ ! -s err ] || wrong "$*: says on stderr: $(head -3 err)"
        return
    fi
    [ "$(wc -l <err)" = 1 ] || wrong "$*: $(wc -l <err) lines on stderr, not one: $(head -3 err)"
    case $(head -1 err) in
        $pattern) ;;
        *) wrong "$*: says '$(head -1 err)', not '$pattern'" ;;
    esac
}
finish() { exit $((failures > 0)); }
