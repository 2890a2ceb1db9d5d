# needs: jq
# tags: fast
# jq: grouping, paths, errors
seq 3000 | $RUN jq -s 'map({k: (. % 7 | tostring), v: .}) | group_by(.k) | map({(.[0].k): (map(.v) | add)}) | add'; echo '{"a":[1,{"b":null}]}' | $RUN jq -c '[paths], (.. | numbers), (.a | length), (try error("x") catch .)'; echo '{' | $RUN jq . 2>/dev/null; echo "status $?"
