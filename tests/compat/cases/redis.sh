# needs: redis-server redis-cli redis-benchmark
# tags: fast
# redis-server under redis-benchmark, with a background save
port=$(free_port); serve $RUN redis-server --port $port --bind 127.0.0.1 --dir "$PWD" --save '' --appendonly yes; wait_port $port || exit 1
redis-benchmark -p $port -q -t set,get,incr,lpush,zadd -n 10000 -c 20 -r 100 >/dev/null; echo "benchmark $?"
for i in $(seq 50); do echo "SET k$i v$i"; echo "INCRBY sum $i"; done | redis-cli -p $port >/dev/null
redis-cli -p $port GET sum; redis-cli -p $port GET k33; redis-cli -p $port EVAL 'local s=0 for i=1,100 do s=s+i end return s' 0; redis-cli -p $port BGSAVE; for i in $(seq 100); do [ -s dump.rdb ] && break; sleep 0.1; done; [ -s dump.rdb ] && echo saved
redis-cli -p $port SHUTDOWN NOSAVE 2>/dev/null; wait $server; echo "server ended: $?"
