# needs: rsync
# tags: fast
# rsync: three processes over pipes
mkdir -p s/d; for i in $(seq 40); do seq $i >s/f$i; done; ln -s ../f1 s/d/l; $RUN rsync -a s/ t/; diff -r s t && echo same; echo more >>s/f7; rm s/f9; $RUN rsync -ai --delete --no-times --checksum s/ t/ | sort; $RUN rsync -a nothing t/ 2>/dev/null; echo "status $?"
