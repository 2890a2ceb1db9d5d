# needs: erl
# erlang: the BEAM with its JIT, thousands of processes, ports
$RUN erl -noshell -eval 'P = self(), [spawn(fun() -> P ! lists:sum(lists:seq(1, N)) end) || N <- lists:seq(1, 2000)], S = lists:sum([receive X -> X end || _ <- lists:seq(1, 2000)]), io:format("~p~n", [S]), F = fun F(0) -> 0; F(1) -> 1; F(N) -> F(N-1) + F(N-2) end, io:format("~p~n", [F(20)]), io:format("~p~n", [catch 1/(S-S)]), io:format("~s", [os:cmd("echo child")]), io:format("~p~n", [erlang:crc32(binary:copy(<<"x">>, 100000))]), halt(4).' 2>&1 | grep -v '^ '; echo "status ${PIPESTATUS[0]}"
