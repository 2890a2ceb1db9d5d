# needs: pbzip2 bzip2
# tags: fast
# pbzip2: threads
seq 200000 >f; $RUN pbzip2 -p2 -b1 -c f | sum; $RUN pbzip2 -p2 -b1 -c f >f.bz2; $RUN pbzip2 -dc f.bz2 | cmp - f && echo same
