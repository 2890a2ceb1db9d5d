# needs: bash
# tags: fast
# bash: arrays, functions, traps, process substitution, pipelines, jobs, here documents, read loops
cat >script <<'S'
declare -A n; for w in b a c a b a; do n[$w]=$((${n[$w]:-0} + 1)); done
for k in $(printf '%s\n' "${!n[@]}" | sort); do echo "$k=${n[$k]}"; done
fib() { local i=$1; if ((i < 2)); then echo $i; else echo $(($(fib $((i-1))) + $(fib $((i-2))))); fi; }
fib 8
while read -r a b; do echo "$b-$a"; done < <(printf '1 2\n3 4\n')
trap 'echo caught' USR1; kill -USR1 $$
(exit 3) | true; echo "${PIPESTATUS[*]}"
sleep 0.2 & wait $!; echo "waited $?"
diff <(seq 5) <(seq 2 6)
s="hello world"; echo "${s^^} ${s/o/0} ${s:6} ${#s}"
coproc cat; echo coproc >&"${COPROC[1]}"; read -r l <&"${COPROC[0]}"; echo "$l"; exec {COPROC[1]}>&-
printf '%05.2f|%-6s|%x\n' 3.14159 ab 255
for i in {1..50}; do x=$(echo $i); done; echo $x
[[ abc123 =~ ([a-z]+)([0-9]+) ]] && echo "${BASH_REMATCH[2]}"
trap 'echo bye' EXIT
kill -TERM $$ & wait; exit 5
S
$RUN bash script; echo "status $?"
$RUN bash -c 'ulimit -c 0; kill -SEGV $$'; echo "status $?"
