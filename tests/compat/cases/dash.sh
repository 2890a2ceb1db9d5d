# needs: dash
# tags: fast
# dash: loops, functions, pipelines, traps, many short processes
cat >script <<'S'
i=0; while [ $i -lt 30 ]; do x=$(expr $i \* 2); i=$((i + 1)); done; echo $x
f() { for a; do echo "<$a>"; done; }; f "a b" c ''
trap 'echo int' INT; kill -INT $$
seq 100 | sed 's/1/x/g' | grep -c x
(cd / && pwd); pwd | wc -l
cat <<X | tr a-z A-Z
here $((6 * 7))
X
set -e; false; echo no
S
$RUN dash script; echo "status $?"
