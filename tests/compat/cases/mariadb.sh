# needs: mariadbd mariadb mariadb-install-db mariadb-admin
# timeout: 200
# a database server with its threads, and a client
mariadb-install-db --no-defaults --datadir="$PWD/d" --user=root --auth-root-authentication-method=normal --skip-test-db >/dev/null 2>&1
serve $RUN mariadbd --no-defaults --datadir="$PWD/d" --socket="$PWD/s" --skip-networking --user=root --innodb-buffer-pool-size=8M
for i in $(seq 600); do [ -S s ] && break; sleep 0.1; done
mariadb --no-defaults -uroot -S s -e 'create database t; use t; create table a(i int primary key, s text) engine=innodb; insert into a values(1,"x"),(2,"y"); update a set s=concat(s,i); select * from a'
mariadb-admin --no-defaults -uroot -S s shutdown; wait $server; echo "server ended: $?"
