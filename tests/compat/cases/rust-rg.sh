# needs: rg
# tags: fast
# ripgrep: a Rust program with threads
mkdir t; for i in $(seq 120); do seq $i $((i + 300)) | sed "s/7/seven $i/" >t/f$i; done
$RUN rg -c --sort path 'seven' t | tail -2; $RUN rg --no-heading -n --sort path '^9\d*5$' t | sum; $RUN rg -o -I 'seven 1\d+' t | sort | uniq -c | tail -2; $RUN rg --files t | wc -l; $RUN rg -U '298\n299' t -l --sort path | head -2; $RUN rg nothing t; echo "status $?"
