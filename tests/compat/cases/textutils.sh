# needs: grep sed diff patch find
# tags: fast
# grep, sed, diff, patch, find, xargs
for i in $(seq 200); do echo "line $i $((i * i))"; done >a
$RUN sed -n '/25$/{s/line/LINE/;p}' a >b; $RUN wc -l b
$RUN grep -E '(1|2)+5$' a | head -4; $RUN grep -c 9 a; $RUN grep -P '\d(?=00$)' a | head -3; $RUN grep -o 'e [0-9]*' a | tail -1
$RUN diff a b | tail -3; $RUN diff -u a b >p; cp a c; $RUN patch -s c p; $RUN cmp b c; echo "cmp $?"
mkdir -p t/u/v; touch t/1 t/u/2 t/u/v/3; $RUN find t -type f | sort; $RUN find t -name '[23]' -exec echo found {} \; | sort
$RUN find t -type f -print0 | sort -z | $RUN xargs -0 -n1 -P1 echo arg; $RUN grep -rl . a b | sort
