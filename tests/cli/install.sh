#!/bin/sh
# An installed Reprise finds its runtime in ../lib/reprise, also through a symbolic link to the command.
. "$TESTS/cli/expect.sh"
unset REPRISE_RT
mkdir -p p/bin p/lib/reprise links
cp "$REPRISE" p/bin/reprise
cp "$BUILD/reprise-rt" p/lib/reprise/reprise-rt || exit 1
expect 0 '' p/bin/reprise run echo installed
[ "$(cat out)" = installed ] || wrong "says $(cat out)"
ln -s "$PWD/p/bin/reprise" links/reprise
expect 0 '' links/reprise run /bin/true
rm p/lib/reprise/reprise-rt
expect 125 'reprise: no runtime: *' p/bin/reprise run /bin/true
finish
