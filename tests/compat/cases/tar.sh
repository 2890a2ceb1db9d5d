# needs: tar gzip cpio
# tags: fast
# tar, gzip, cpio: packing and unpacking a tree
mkdir -p t/a/b; for i in $(seq 60); do seq $((i * 20)) >t/a/f$i; ln -s ../f$i t/a/b/l$i; done
$RUN tar --sort=name --owner=0 --group=0 --mtime=@0 -cf x.tar t; sha256sum <x.tar
$RUN tar --sort=name --owner=0 --group=0 --mtime=@0 -I 'gzip -n' -cf x.tgz t; $RUN tar tzf x.tgz | tail -3
mkdir u; $RUN tar xzf x.tgz -C u; diff -r t u/t && echo same
find t -type f | sort | $RUN cpio -o --quiet --reproducible -R 0:0 >x.cpio; mkdir v; (cd v; $RUN cpio -id --quiet <../x.cpio); diff -r --no-dereference t/a/f7 v/t/a/f7 && echo same
