# needs: xz
# tags: fast
# xz -T2
seq 300000 >f; $RUN xz -T2 -2 --block-size=400KiB -c f | sum; $RUN xz -T2 -2 --block-size=400KiB -c f | $RUN xz -dc -T2 | cmp - f && echo same
