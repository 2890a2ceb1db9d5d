# needs: memcached
# tags: fast
# memcached: threads, libevent
port=$(free_port); u=; [ "$(id -u)" = 0 ] && u='-u nobody'; serve $RUN memcached -l 127.0.0.1 -p $port -t 2 $u; wait_port $port || exit 1
exec 3<>/dev/tcp/127.0.0.1/$port; for i in $(seq 200); do printf 'set k%d 0 0 3\r\nabc\r\n' $i; done >&3; printf 'get k7 k99 none\r\nincr k1 1\r\nquit\r\n' >&3; tr -d '\r' <&3 | sort | uniq -c | sed 's/^ *//'; stop $server
