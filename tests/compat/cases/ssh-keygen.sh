# needs: ssh-keygen
# tags: fast
# ssh-keygen: all key types, signing, conversion
for t in ed25519 ecdsa rsa; do $RUN ssh-keygen -q -t $t -N '' -f k_$t -C c; $RUN ssh-keygen -lf k_$t.pub | sed 's/SHA256:[^ ]*/HASH/'; $RUN ssh-keygen -y -f k_$t | cut -c1-20; done
echo text >m; $RUN ssh-keygen -q -Y sign -f k_ed25519 -n file m 2>/dev/null; echo "a $(cat k_ed25519.pub)" >allowed; $RUN ssh-keygen -Y verify -f allowed -I a -n file -s m.sig <m | cut -c1-20; $RUN ssh-keygen -e -m PEM -f k_rsa | head -1; $RUN ssh-keygen -lf nothing 2>/dev/null; echo "status $?"
