# needs: sqlite3
# tags: fast
# sqlite3: a database on disk, transactions, indices, queries, write-ahead log
$RUN sqlite3 a.db "pragma journal_mode=wal; create table t(a integer primary key, b text, c real); with recursive n(i) as (select 1 union all select i+1 from n where i<20000) insert into t select i, 'r'||(i*7919%20011), i/7.0 from n; create index ib on t(b); select count(*), sum(length(b)), round(sum(c),3) from t; select b from t order by b limit 3; begin; delete from t where a%2; rollback; select count(*) from t; update t set c=c*2 where b like '%99%'; select changes(); select json_group_array(a) from (select a from t where b>'r9999' limit 3);"
$RUN sqlite3 a.db .dump | sum; $RUN sqlite3 a.db "pragma integrity_check; vacuum; select x;" 2>/dev/null; echo "status $?"
