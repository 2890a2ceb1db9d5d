# tags: fast
# coreutils, one after the other
seq 5000 | $RUN shuf --random-source=/dev/zero | $RUN sort -n | $RUN uniq | $RUN md5sum
$RUN seq 3 | $RUN tac | $RUN paste -sd+ | $RUN cut -d+ -f2
$RUN factor 1234567890123 600851475143; $RUN expr 6 \* 7; $RUN date -u -d @1700000000 +%FT%T
$RUN printf 'b 2\na 1\n' | $RUN sort | $RUN tee t | $RUN wc
printf 'a x\nb y\n' >j1; printf 'a 1\nb 2\n' >j2; $RUN join j1 j2; $RUN comm j1 j2; $RUN fold -w 2 j1 | $RUN head -2
$RUN mkdir -p d/e; $RUN touch d/e/f; $RUN ln -s f d/e/g; $RUN cp -a d d2; $RUN ls -1R d2; $RUN mv d2 d3; $RUN rm -r d; $RUN ls
$RUN od -An -tx1 j1; $RUN base64 j1; $RUN sha512sum j1 j2; $RUN cksum j1; $RUN nl j1; $RUN expand j1 | $RUN tr a-z A-Z
$RUN split -n 3 j1; $RUN cat xaa xab xac; $RUN stat -c '%s %a %F' j1; $RUN realpath d3 | $RUN tail -c 4; $RUN basename /a/b.c .c
$RUN timeout 0.3 sleep 10; echo "status $?"; $RUN env -i A=1 env; $RUN nice -n 3 nice; $RUN test -f j1; echo $?
$RUN truncate -s 100000 big; $RUN dd if=big bs=100 count=10 status=none | $RUN wc -c; $RUN numfmt --to=iec 123456789; $RUN tsort <<<'a b'
$RUN stdbuf -o0 echo unbuffered; $RUN yes | $RUN head -3; $RUN kill -l 9; $RUN csplit -s j1 2; $RUN pr -l 5 -h x j1 | $RUN tail -2; $RUN false; echo $?
