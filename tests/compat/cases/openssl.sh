# needs: openssl
# tags: fast
# openssl: digests, ciphers, keys and certificates from fixed input
seq 30000 >f; for d in md5 sha1 sha256 sha512 blake2b512 sha3-256; do $RUN openssl dgst -$d f | cut -c1-60; done
for c in aes-128-cbc aes-192-ofb aes-256-ctr chacha20 camellia-128-cbc; do $RUN openssl enc -$c -K $(printf '%064d' 1) -iv $(printf '%032d' 2) -in f 2>/dev/null | sum; done
$RUN openssl genrsa -out k.pem 2048 2>/dev/null; $RUN openssl rsa -in k.pem -check -noout 2>&1; $RUN openssl req -x509 -key k.pem -subj /CN=x -days 3 -out c.pem; $RUN openssl verify -CAfile c.pem c.pem; $RUN openssl dgst -sha256 -sign k.pem -out s f; $RUN openssl rsa -in k.pem -pubout -out p.pem 2>/dev/null; $RUN openssl dgst -sha256 -verify p.pem -signature s f; $RUN openssl prime -hex 10001; $RUN openssl ecparam -name prime256v1 -genkey -noout | $RUN openssl ec -check -noout 2>&1 | tail -1; $RUN openssl verify nothing 2>/dev/null; echo "status $?"
