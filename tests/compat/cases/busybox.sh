# needs: busybox
# tags: fast
# busybox (static): its shell and applets
$RUN busybox sh -c 'for i in 1 2 3; do echo $i; done | busybox awk "{s+=\$1} END{print s}"; echo abc | busybox md5sum; busybox seq 20 | busybox sort -r | busybox head -3; busybox printf "%s\n" a b | busybox tr a-z A-Z'
seq 1000 >f; $RUN busybox gzip -c f | $RUN busybox gunzip -c | $RUN busybox sha1sum
$RUN busybox vi -h >/dev/null 2>&1; $RUN busybox false; echo "status $?"
$RUN busybox tar c f | $RUN busybox tar t
