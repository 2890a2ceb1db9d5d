# needs: ksh
# tags: fast
# ksh: arithmetic, arrays, co-processes
$RUN ksh -c 'typeset -a a; a[0]=x; a[3]=y; print ${#a[*]} ${a[3]}; float f=1.5; print $((f * 2)); for i in 1 2 3; do print -n "$i "; done; print; print one | read l; print "$l"; exit 3'
echo "status $?"
