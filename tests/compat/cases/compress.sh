# needs: gzip bzip2 xz zstd
# tags: fast
# gzip, bzip2, xz, zstd: there and back, and a damaged file
seq 60000 | sed 's/5/five/g' >f
for c in 'gzip -n' bzip2 xz zstd; do
    $RUN $c -c f >f.c 2>/dev/null; sha256sum <f.c | cut -c1-12; $RUN $c -dc f.c 2>/dev/null | cmp - f && echo $c same
    printf X | dd of=f.c bs=1 seek=500 conv=notrunc status=none; $RUN $c -tq f.c 2>/dev/null; echo "damaged: $?"
done
