# needs: age age-keygen
# tags: fast
# age: a Go program
$RUN age-keygen -o k 2>/dev/null; r=$(grep -o 'age1.*' k); seq 50000 >f; $RUN age -r "$r" -o f.age f && $RUN age -d -i k f.age | cmp - f && echo same; $RUN age -a -r "$r" f | head -1; printf X | dd of=f.age bs=1 seek=300 conv=notrunc status=none; $RUN age -d -i k f.age >/dev/null 2>&1; echo "status $?"
