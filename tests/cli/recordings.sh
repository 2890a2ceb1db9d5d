#!/bin/bash
# ls, rm, pack, unpack: recordings are made of a golden log, so that nothing is recorded here.
. "$TESTS/cli/expect.sh"
export REPRISE_DIR=$PWD/base
good=$TESTS/golden/good.log
object=c4cea00a76e86653e94fccac66f6fd86 # what good.log needs: the bytes "no real file"

make_recording() {
    mkdir -p "$1" base/store/c4 && cp "$good" "$1/log"
    printf 'no real file' >base/store/c4/${object#c4}
}
has_object() { [ -f base/store/c4/${object#c4} ]; }
json() { /usr/bin/python3 -c "import json, sys; d = json.load(open('out')); sys.exit(not ($1))" || wrong "$1: $(head -3 out)"; }

# nothing there yet
expect 0 '' "$REPRISE" ls
[ ! -s out ] || wrong "ls of nothing: $(cat out)"
for verb in info ps dump 'pack -o x'; do expect 125 'reprise: no recording in */base yet: *' "$REPRISE" $verb; done
expect 125 "reprise: no recording 'nix', neither here nor in */base; *" "$REPRISE" info nix
expect 125 'reprise: nix/nix: No such file*' "$REPRISE" info nix/nix

# names
make_recording base/one-0 && ln -s one-0 base/latest
expect 0 '' "$REPRISE" info
grep -q '^status *exit 3$' out || wrong "info: $(cat out)"
expect 0 '' "$REPRISE" info --json one-0
json 'd["status"] == 768 and d["events"] == 32 and d["header"]["host"] == "golden" and d["objects"]["count"] == 1'
expect 0 '' "$REPRISE" ps --json base/one-0
json '[p["pid"] for p in d] == [100, 102] and d[0]["command"][1] == "a b" and d[1]["streams"] == [1, 2]'
expect 0 '' "$REPRISE" dump --stream 0 --thread 1 --from 10 --to 11 one-0
[ "$(wc -l <out)" = 3 ] || wrong "dump of two events: $(cat out)"
expect 125 'reprise: no stream 9 in this recording*' "$REPRISE" dump --stream 9
expect 0 '' "$REPRISE" ls --json
json '[r["name"] for r in d] == ["one-0"] and d[0]["state"] == "exit 3"'
mkdir there && (cd there && echo 'something else' >one-0 && expect 0 '' "$REPRISE" info one-0) || wrong "a file has the name of a recording"
expect 125 'reprise: there/one-0 is no recording*' "$REPRISE" info there/one-0

# pack and unpack
expect 0 '' "$REPRISE" pack -o one.pack
[ "$(stat -c %a one.pack)" = 600 ] || wrong "the packed file has mode $(stat -c %a one.pack)"
/usr/bin/python3 "$TESTS/../tools/read_log.py" --pack one.pack >/dev/null || wrong "the second reader does not like the packed file"
expect 125 'reprise: one.pack is a packed recording: unpack it*' "$REPRISE" info one.pack
REPRISE_DIR=$PWD/other expect 0 '' "$REPRISE" unpack one.pack
cmp -s other/one-0/log "$good" || wrong "the log came out of the packed file as another one"
cmp -s other/store/c4/${object#c4} base/store/c4/${object#c4} || wrong "the object is not in the store"
REPRISE_DIR=$PWD/other expect 0 '' "$REPRISE" info
[ "$(readlink other/latest)" = one-0 ] || wrong "what was unpacked is not the latest: $(readlink other/latest)"
REPRISE_DIR=$PWD/other expect 0 '' "$REPRISE" unpack --json one.pack
json 'd["recording"].endswith("/other/one-0-1") and d["objects"] == 1'
REPRISE_DIR=$PWD/other expect 0 '' "$REPRISE" unpack one.pack -o apart
REPRISE_DIR=$PWD/other expect 125 'reprise: cannot make apart: File exists' "$REPRISE" unpack one.pack -o apart
REPRISE_DIR=$PWD/other expect 125 'reprise: the recording would take *--limit*' "$REPRISE" unpack --limit 1K one.pack
REPRISE_DIR=$PWD/other expect 125 'reprise: this is a log, not a packed recording' "$REPRISE" unpack "$good"
"$REPRISE" pack -o - | REPRISE_DIR=$PWD/third "$REPRISE" unpack - >/dev/null 2>&1 </dev/stdin || wrong "through a pipe"

# damaged packed files: refused, and nothing is left behind
/usr/bin/python3 - <<'END'
import random
data = open("one.pack", "rb").read()
random.seed(1)
for i in range(24):
    at = random.randrange(len(data))
    open(f"bad{i}.pack", "wb").write(data[:at] + bytes([data[at] ^ 1 << i % 8]) + data[at + 1:])
for i, n in enumerate((0, 20, 48, 60, len(data) // 2, len(data) - 1)):
    open(f"short{i}.pack", "wb").write(data[:n])
open("long.pack", "wb").write(data + b"x")
END
for f in bad*.pack short*.pack long.pack; do
    REPRISE_DIR=$PWD/hostile expect 125 'reprise: *' "$REPRISE" unpack $f
done
[ "$(find hostile -type f ! -name lock ! -path 'hostile/store/c4/*' | wc -l)" = 0 ] || wrong "left behind: $(find hostile)"

# an object with other bytes is not packed, nor one that is missing
printf 'no rexl file' >base/store/c4/${object#c4}
expect 125 'reprise: */store/c4/* is damaged*' "$REPRISE" pack -o two.pack
rm base/store/c4/${object#c4}
expect 125 'reprise: the contents of /bin/demo are not in the store*' "$REPRISE" pack -o two.pack
[ ! -e two.pack ] || wrong "a packed file was left behind"
ls two.pack.part* 2>/dev/null && wrong "a part of a packed file was left behind"

# rm: only recordings, and objects go with the last one that needs them
make_recording base/two-0
mkdir base/mine dir && echo mine >base/mine/log && touch dir/file
expect 125 'reprise: */dir is no recording*' "$REPRISE" rm ./dir
expect 125 'reprise: */mine is no recording*' "$REPRISE" rm mine
expect 0 '' "$REPRISE" rm one-0
has_object || wrong "rm removed an object that another recording needs"
[ "$(readlink base/latest)" = two-0 ] || wrong "latest leads to $(readlink base/latest)"
expect 125 'reprise: */two-0 is under way*' flock -x base/two-0/log "$REPRISE" rm two-0
touch base/two-0/notes
expect 0 'reprise: */two-0 stays: other files are in it' "$REPRISE" rm two-0
[ -f base/two-0/notes ] && [ ! -e base/two-0/log ] || wrong "rm of a directory with other files"
has_object && wrong "rm left an object that nobody needs"
[ -L base/latest ] && wrong "latest leads to $(readlink base/latest)"

# recordings elsewhere count; while somebody records, the store stays
make_recording base/three-0 && make_recording far && ln -s "$PWD/far" base/elsewhere/x 2>/dev/null ||
    { mkdir base/elsewhere && ln -s "$PWD/far" base/elsewhere/x; }
expect 0 '' "$REPRISE" rm --all
[ -f base/mine/log ] || wrong "rm --all removed what is no recording"
[ -d base/three-0 ] && wrong "rm --all left a recording"
has_object || wrong "rm removed an object that a recording elsewhere needs"
expect 0 'reprise: kept files stay for now*' flock -s base/lock "$REPRISE" rm far
has_object || wrong "rm removed an object while somebody records"
expect 0 '' "$REPRISE" rm --unused --json
json 'd == {"recordings": 0, "files": 1, "bytes": d["bytes"]}'
has_object && wrong "rm --unused left an object"
[ -L base/elsewhere/x ] && wrong "a note about a recording that is gone"

# a recording of another version may need anything
make_recording base/four-0 && mkdir base/five-0 && cp "$TESTS/golden/version.log" base/five-0/log
expect 125 'reprise: kept files stay: *' "$REPRISE" rm four-0
has_object || wrong "rm removed an object that a recording of another version may need"

for args in 'rm' 'rm --all x' 'unpack' 'unpack a b' 'pack' 'pack a b -o c' 'info a b' 'ls x' 'dump --from x' 'dump --stream' 'ps --nix'; do
    "$REPRISE" $args >out 2>err && wrong "reprise $args is fine"
    grep -q '^usage:' err || wrong "reprise $args: $(cat err)"
done
finish
