#!/bin/bash
# A ring of packets is refused while recording, with one line that says so; the program goes on without it, and is replayed.
set -u
export REPRISE_DIR=$PWD/rd
"$BUILD/guest/net_packets" >native
[ $? = 77 ] && exit 77
"$REPRISE" record -o rd/ring -- "$BUILD/guest/net_packets" >out 2>err || { cat out err; exit 1; }
cmp native out || exit 1
[ "$(grep -c 'rings of packets' err)" = 1 ] && [ "$(wc -l <err)" = 1 ] || { cat err; exit 1; }
"$REPRISE" replay -a ring >out 2>err || { cat err; exit 1; }
cmp native out
