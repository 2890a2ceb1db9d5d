# needs: initdb postgres psql
# timeout: 180
# postgres: initdb, server, parallel clients, queries, stop
pg() { if [ "$(id -u)" = 0 ]; then runuser -u postgres -- env HOME="$PWD" XDG_CACHE_HOME="$PWD/.cache" "$@"; else "$@"; fi; }
mkdir p; cd p; [ "$(id -u)" = 0 ] && { chown postgres . || skip "no user postgres"; }
pg $RUN initdb -D data -A trust -U postgres --no-sync --locale=C -E UTF8 >init.log 2>&1; r=$?; [ $r = 0 ] || tail -6 init.log >&2; echo "initdb $r"
port=$(free_port); servers=()
if [ "$(id -u)" = 0 ]; then setsid runuser -u postgres -- $RUN postgres -D data -p $port -k "$PWD" -c fsync=off -c listen_addresses=127.0.0.1 >server.log 2>&1 </dev/null & else setsid $RUN postgres -D data -p $port -k "$PWD" -c fsync=off -c listen_addresses=127.0.0.1 >server.log 2>&1 </dev/null & fi
trap 'kill -KILL $(head -1 data/postmaster.pid) 2>/dev/null; end_servers' EXIT; server=$!; servers+=($server); wait_port $port || exit 1
q() { psql -X -q -h 127.0.0.1 -p $port -U postgres -At -c "$1" postgres; }
for i in $(seq 50); do q 'select 1' >/dev/null 2>&1 && break; sleep 0.2; done
q "create table t(a int primary key, b text); insert into t select i, md5(i::text) from generate_series(1, 20000) i; create index on t(b);"
q "select count(*), max(b), sum(a) from t where b like '%a1%'"; q "select a % 7, count(*) from t group by 1 order by 1"
for k in 1 2 3; do (for i in 1 2 3; do q "update t set b = b || '$k' where a % 3 = $((k - 1))"; done) & c[k]=$!; done; wait ${c[1]} ${c[2]} ${c[3]}; q "select count(*), sum(length(b)) from t"; q "select 1/0" 2>&1 | grep -o 'division by zero'
q "set max_parallel_workers_per_gather=2; set parallel_setup_cost=0; set parallel_tuple_cost=0; set min_parallel_table_scan_size=0; select sum(length(b)) from t"
pid=$(head -1 data/postmaster.pid); kill -INT $pid; wait $server; echo "server ended: $?"
