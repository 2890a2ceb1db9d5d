#!/bin/bash
# Images that are damaged, of the wrong kind or not ours are ignored and replaced; the program never notices.
. "$TESTS/cli/kept.sh"
program="/usr/bin/expr 6 * 7"
set -f
is_cold $program
warm_up $program
is_warm $program
cp -r "$dir" good
restore() { rm -rf "$dir" && cp -r good "$dir"; }
images() { (cd "$dir" && find . -type f -name '????????????????'); }
damage() { # damage HOW: every image, then run, then see that a new one comes
    for f in $(images); do "$1" "$dir/$f"; done
    same $program
}
size_of() { stat -c %s "$1"; }
flip() { # one bit somewhere; most images are mostly code
    local at=$(((RANDOM * 32768 + RANDOM) % $(size_of "$1")))
    python3 - "$1" $at $((1 << RANDOM % 8)) <<'PY'
import sys
with open(sys.argv[1], "r+b") as f:
    at = int(sys.argv[2])
    f.seek(at); b = f.read(1)[0]
    f.seek(at); f.write(bytes([b ^ int(sys.argv[3])]))
PY
}
flip_head() {
    local at=$((RANDOM % 512))
    printf '\377\177\377' | dd of="$1" bs=1 seek=$at conv=notrunc status=none
}
cut_short() { truncate -s $((RANDOM * 32768 % $(size_of "$1"))) "$1"; }
cut_page() { truncate -s -4096 "$1"; }
longer() { truncate -s +4096 "$1"; }
empty() { : >"$1"; }
zeros() { local n; n=$(size_of "$1"); : >"$1"; truncate -s "$n" "$1"; }
noise() { head -c "$(size_of "$1")" /dev/urandom >"$1"; }
swapped() { cat "$dir/$(images | head -1)" >"$1"; }
link() { mv "$1" "$1-away" && ln -s "$1-away" "$1"; }
dangling() { rm "$1" && ln -s /nowhere/at/all "$1"; }
loop() { rm "$1" && ln -s "$1" "$1"; }
fifo() { rm "$1" && mkfifo "$1"; }
folder() { rm "$1" && mkdir "$1"; }
unreadable() { chmod 000 "$1"; }
everybodys() { chmod 666 "$1"; }

for i in 1 2 3 4 5 6 7 8; do restore; damage flip; done
for i in 1 2 3 4; do restore; damage flip_head; done
for i in 1 2; do restore; damage cut_short; done
# Images that were found whole before are not verified each time, unless somebody touches them.
marked() { find "$dir" -name '????????????????' ! -newermt 1987-01-02 | wc -l; }
replaced() { cp "$1" other && flip other && touch -r "$1" other && mv other "$1"; } # by one that has its times
for how in flip flip_head replaced zeros noise flip replaced flip; do
    restore
    [ "$(marked)" = 0 ] || wrong "copies of images count as verified"
    same $program
    [ "$(marked)" != 0 ] || wrong "images are verified each time"
    damage $how
done
for how in cut_page longer empty zeros noise swapped link dangling loop fifo unreadable everybodys; do
    restore
    damage $how
    warm_up $program
    is_warm $program
done
for how in empty dangling loop fifo; do # the number that decides where libraries go
    restore
    $how "$dir/seed"
    same $program
    warm_up $program
    is_warm $program
done
restore
damage folder # stays, and does no harm
same $program
if [ "$(id -u)" = 0 ]; then
    restore
    chown -R nobody "$dir"
    chown root "$dir"
    same $program
    is_warm $program # replaced
    [ "$(find "$dir" -user nobody -name '????????????????' | wc -l)" = 0 ] || wrong "images of somebody else are still there"
fi

# Deleted, replaced and made unwritable under a running program.
cat >slow.py <<'PY'
import time, zlib, hashlib, json
for i in range(12):
    time.sleep(0.05)
    print(i, zlib.crc32(b"x" * i), hashlib.sha256(str(i).encode()).hexdigest(), json.dumps([i]))
PY
/usr/bin/python3 slow.py >want
meanwhile() { # meanwhile COMMAND: to the directory, while a program runs; then all is well again
    warm_up /usr/bin/python3 slow.py
    "$REPRISE" run -- /usr/bin/python3 slow.py >got 2>err &
    local pid=$!
    sleep 0.3
    "$@"
    wait $pid || wrong "$*: status $?"
    cmp -s want got || wrong "$*: output differs"
    [ ! -s err ] || wrong "$*: says: $(head -3 err)"
    chmod 700 "$dir" 2>/dev/null || rm -rf "$dir"
}
become_file() { rm -rf "$dir" && : >"$dir"; }
become_link() { mv "$dir" elsewhere && ln -s "$PWD/elsewhere" "$dir"; }
meanwhile rm -rf "$dir"
meanwhile chmod 500 "$dir"
meanwhile become_file
rm -f "$dir"
meanwhile become_link
rm -f "$dir"
finish
