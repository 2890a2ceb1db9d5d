# needs: zsh
# tags: fast
# zsh: globbing, arrays, modules
$RUN zsh -f -c 'a=(c b a); print -l ${(o)a}; zmodload zsh/mathfunc; print $(( int(sqrt(144)) )); touch x1 x2; print x*(N); typeset -A m; m[k]=v; print ${m[k]}; print ${(U)a[1]}; for i in {1..20}; do :; done; print $i; exit 4'
echo "status $?"
