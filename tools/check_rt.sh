#!/bin/sh
# Fails if the runtime given needs anything from outside itself: it lives in processes whose libc is not ours.
rt=$1
bad() { echo "check_rt: $rt: $*" >&2; failed=1; }
undefined=$(nm -u "$rt")
[ -z "$undefined" ] || bad "undefined symbols:" $undefined
nm "$rt" | grep -q ' [Tt] _start$' || bad "no _start"
headers=$(readelf -lW "$rt")
case $headers in *INTERP*) bad "asks for an ELF interpreter (PT_INTERP)" ;; esac
case $headers in *RWE*) bad "has a segment that is writable and executable" ;; esac
case $headers in *" TLS "*) bad "has thread-local storage of its own (PT_TLS)" ;; esac
case $(readelf -dW "$rt") in *NEEDED*) bad "needs a shared library (DT_NEEDED)" ;; esac
relocations=$(readelf -rW "$rt" | grep R_X86_64_)
[ -z "$relocations" ] || bad "relocations, and nobody is there to do them: $relocations"
exit ${failed:-0}
