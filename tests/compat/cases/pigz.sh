# needs: pigz
# tags: fast
# pigz: threads
seq 400000 >f; $RUN pigz -p 3 -nc f | sum; $RUN pigz -p 2 -nc f | $RUN pigz -dc | cmp - f && echo same
