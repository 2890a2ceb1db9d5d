#!/bin/bash
# Mapped files: kept once, whatever they are called; known ones are not read again; what cannot be kept is said once.
. "$TESTS/cli/fake.sh"
old() { touch -d '1 hour ago' "$1"; } # the time of the inode's last change stays
object() { echo "rd/store/${1:0:2}/${1:2}"; }
head -c 300000 /dev/urandom >one
cp one two
head -c 3000000 /dev/zero >zeros
printf x >>zeros
: >nothing
expect 0 '' $record true file one file two file zeros file nothing file /bin/true events 1 64
name=$(sed -n 's/^kept //p' out | head -1)
[ "$(sed -n 's/^kept //p' out | sed -n 2p)" = "$name" ] || wrong "the same contents have two names"
[ "$(grep -c '^kept' out)" = 5 ] || wrong "not all files were kept: $(cat out)"
cmp -s one "$(object $name)" || wrong "the object is not the file"
[ "$(stat -c %a "$(object $name)")" = 600 ] || wrong "mode of an object"
cmp -s zeros "$(object "$(sed -n 's/^kept //p' out | sed -n 3p)")" || wrong "a file with holes is not the same"
[ -z "$(find rd/store -name '.*' -type f)" ] || wrong "left in the store: $(find rd/store -name '.*')"
[ "$(facts latest objects)" = "{'count': 4, 'size': $((300000 + 3000001 + $(stat -Lc %s /bin/true)))}" ] ||
    wrong "objects of the log: $(facts latest objects)"

# Known: those that did not change a moment ago.
expect 0 '' $record true file one file /bin/true events 1 64
[ "$(sed 's/ .*//' out | xargs)" = 'kept known' ] || wrong "young and old: $(cat out)"
[ "$(facts latest objects | grep -o "count': [0-9]*")" = "count': 2" ] || wrong "a known file is not named in the log"
sleep 2.1
$record true file one >/dev/null && expect 0 '' $record true file one events 1 64
grep -q '^known' out || wrong "one is not known: $(cat out)"
printf y >>one
expect 0 '' $record true file one events 1 64
grep -q '^kept' out || wrong "changed, yet $(cat out)"

# An object that is gone is kept anew, though the index knows the file.
true_name=$(sed -n 's/^known //p' out | head -1)
expect 0 '' $record true file /bin/true events 1 64
n=$(sed -n 's/^known //p' out) && rm "$(object $n)"
expect 125 'reprise: a file that the recording needs is not in *' $replay
expect 0 '' $record true file /bin/true events 1 64
[ "$(cat out)" = "kept $n" ] && [ -f "$(object $n)" ] || wrong "a lost object: $(cat out)"
expect 0 '' $replay

# A damaged index is no matter.
for damage in 'head -c 3000 /dev/urandom >rd/store/index' ': >rd/store/index' 'rm -f rd/store/index; mkfifo rd/store/index' \
    'rm -f rd/store/index; ln -s /nowhere rd/store/index' 'yes "1 2 3" | head -1000 >rd/store/index'; do
    (eval "$damage") 2>/dev/null
    expect 0 '' $record true file /bin/true events 1 64
    [ "$(cat out)" = "kept $n" ] || wrong "$damage: $(cat out)"
    rm -f rd/store/index
done
$record true file /bin/true >/dev/null
for i in $(seq 14); do cat rd/store/index rd/store/index >i && mv i rd/store/index; done
[ "$(stat -c %s rd/store/index)" -gt 1000000 ] || wrong "index is not long enough for the test"
cat rd/store/index rd/store/index >i && mv i rd/store/index
expect 0 '' $record true file /bin/true events 1 64
[ "$(stat -c %s rd/store/index)" -lt 1000000 ] || wrong "a long index was not cut: $(stat -c %s rd/store/index)"
grep -q ^known out || wrong "a long index: $(cat out)"

# What cannot be kept.
expect 0 'reprise: cannot keep the contents of a mapped file /dev/null: *' $record true file /dev/null file /dev/zero events 1 64
[ "$(sed 's/ .*//' out | xargs)" = 'failed failed' ] || wrong "devices: $(cat out)"
finish
