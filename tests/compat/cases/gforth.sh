# needs: gforth
# gforth: threaded code, an interpreter loop made of indirect jumps
$RUN gforth -e ': fib dup 2 < if drop 1 else dup 1- recurse swap 2 - recurse + then ; 24 fib . cr : s 0 300000 0 do i 7 mod + loop ; s . cr : t 1 0 / ; '"' t catch . cr"' create a 100 cells allot : f 100 0 do i dup * a i cells + ! loop ; f a 50 cells + @ . cr bye'; echo "status $?"
