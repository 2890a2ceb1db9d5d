# needs: octave-cli
# timeout: 120
$RUN octave-cli --no-init-file --eval 'A = magic(4); disp(A * A); [q, r] = qr(A); printf("%d\n", norm(q * r - A) < 1e-9)'
