#!/bin/sh
# Kept translations: in a directory of the user's own, 0700; anything doubtful and Reprise silently does without.
. "$TESTS/cli/expect.sh"
cat >rt <<'END'
#!/bin/sh
echo "$2" | sed 's/,seed=\([0-9a-f]*\)//'
echo "$2" | sed -n 's/.*seed=\([0-9a-f]*\).*/\1/p' >>"$SEEDS"
END
chmod +x rt
REPRISE_RT=$PWD/rt
SEEDS=$PWD/seeds
export REPRISE_RT SEEDS
given() { # given WORDS ENVIRONMENT...: the options that the runtime gets
    local want=$1
    shift
    expect 0 '' env "$@" "$REPRISE" run /bin/true
    [ "$(cat out)" = "$want" ] || wrong "$*: options are '$(cat out)', not '$want'"
}
here=$PWD
mkdir home own theirs open
given "cache=1,cachedir=$here/own/reprise" XDG_CACHE_HOME="$here/own"
[ "$(stat -c %a own/reprise)" = 700 ] || wrong "mode of the directory is $(stat -c %a own/reprise)"
given "cache=1,cachedir=$here/own/reprise" XDG_CACHE_HOME="$here/own"
[ "$(sort -u seeds | wc -l)" = 1 ] || wrong "two runs with the same cache directory got different seeds: $(cat seeds)"
given "cache=1,cachedir=$here/home/.cache/reprise" HOME="$here/home" XDG_CACHE_HOME=
given "cache=1,cachedir=$here/home/.cache/reprise" HOME="$here/home" XDG_CACHE_HOME=relative
given cache=0 -u HOME -u XDG_CACHE_HOME
given cache=0 XDG_CACHE_HOME=/dev/null
[ "$(tail -2 seeds | sort -u | wc -l)" = 2 ] || wrong "without a cache directory the seed must be random"
mkdir -p not,sayable && given cache=0 XDG_CACHE_HOME="$here/not,sayable"

ln -s "$here/own/reprise" theirs/reprise
given cache=0 XDG_CACHE_HOME="$here/theirs"
mkdir open/reprise && chmod 777 open/reprise
given cache=0 XDG_CACHE_HOME="$here/open"
if [ "$(id -u)" = 0 ]; then
    chmod 700 open/reprise && chown nobody open/reprise
    given cache=0 XDG_CACHE_HOME="$here/open"
fi

expect 0 '' "$REPRISE" run --no-cache --debug policy=count --debug trace=1 /bin/true
[ "$(cat out)" = cache=0,policy=count,trace=1 ] || wrong "--no-cache: options are '$(cat out)'"
finish
