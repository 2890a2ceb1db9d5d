# needs: gawk
# tags: fast
# gawk: associative arrays, regular expressions, functions, pipes, sorting
$RUN gawk 'function f(n) { return n < 2 ? n : f(n-1) + f(n-2) } BEGIN { print f(18); for (i = 0; i < 20000; i++) a[i % 301] += i; n = asorti(a, k); print n, k[7], a[7]; print toupper("abc"), gensub(/(.)b/, "[\\1]", "g", "abcb"), strftime("%Y", 0, 1); printf "%.6f\n", atan2(0, -1); "echo piped" | getline x; print x; print length(sprintf("%1000s", "")); exit 3 }'
echo "status $?"
seq 3000 | $RUN gawk '{ s += $1 * $1; if (/7.*7/) c++ } END { print s, c | "cat" }'
