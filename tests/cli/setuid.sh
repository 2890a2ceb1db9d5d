#!/bin/sh
# A set-user-id program runs without the privilege, and Reprise says so in one line.
. "$TESTS/cli/expect.sh"
[ "$(id -u)" = 0 ] || { echo "needs root to make a set-user-id file"; exit 77; }
cp /usr/bin/id ./suid_id
chown nobody suid_id && chmod 4755 suid_id
chmod 755 .
expect 0 'reprise: *suid_id*set-user-id*' "$REPRISE" run ./suid_id -u
[ "$(cat out)" = 0 ] || wrong "effective user is $(cat out), not the caller's"

# Set-user-id to oneself is no privilege: nothing to say.
cp /usr/bin/id ./own && chmod 4755 own
expect 0 '' "$REPRISE" run ./own -u

# The same when the program is executed from inside.
expect 0 'reprise: *suid_id*set-user-id*' "$REPRISE" run /bin/sh -c './suid_id -u; true'
[ "$(cat out)" = 0 ] || wrong "inside: effective user is $(cat out), not the caller's"
finish
