# needs: fish
$RUN fish --no-config -c 'for i in (seq 3); echo $i; end; string upper abc; math 2^10; sleep 0.1 & wait; echo done'
