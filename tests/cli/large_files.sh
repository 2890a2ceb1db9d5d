#!/bin/bash
# Large libraries, of rustc or clang, all lie near the cache, wherever chance puts the first: far away their translations are not kept.
. "$TESTS/cli/expect.sh"
for i in 1 2 3 4 5 6 7 8; do
    export XDG_CACHE_HOME=$PWD/xdg$i # another seed
    mkdir -p "$XDG_CACHE_HOME"
    for sizes in '65 1 2 3 105' '105 9 1 65' '60 4 105 8'; do
        out=$("$REPRISE" run -- "$BUILD/guest/map_large" $sizes) || wrong "map_large $sizes: status $?"
        ! grep -q high <<<"$out" || wrong "$sizes: $out"
    done
done
finish
