# needs: swipl
# swi-prolog: backtracking, garbage collection, exceptions
$RUN swipl -q -g "numlist(1, 300000, L), sum_list(L, S), writeln(S), findall(X-Y, (between(1, 60, X), between(X, 60, Y), 0 =:= (X*X + Y*Y) mod 61), P), length(P, N), writeln(N), catch(X1 is 1/0, error(E, _), (print(E), nl)), length(Q, 6), (permutation([1,2,3,4,5,6], Q), Q = [A,B|_], A > 5, B > 4 -> writeln(Q) ; true), atom_length(hello, H), writeln(H), halt(3)" </dev/null 2>/dev/null; echo "status $?"
