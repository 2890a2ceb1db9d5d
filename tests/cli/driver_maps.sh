#!/bin/bash
# The kernel maps rings of io_uring nowhere but where it chooses itself, from the top of its area down. That top is where the runtime's
# own memory is in some processes by chance, and here by the limit of the stack, which is kept free above it.
. "$TESTS/cli/expect.sh"
for top in 0x7ef180000000 0x7ef900000000 0x7efe00000000; do
    (ulimit -s $(((0x7ffffffff000 - top) / 1024)) && exec setarch -R "$REPRISE" run -- "$BUILD/guest/io_uring_rings") >out 2>&1 ||
        wrong "mappings from $top on: $(head -3 out)"
done
finish
