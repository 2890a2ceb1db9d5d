# needs: socat
# tags: fast
# socat: sockets, pseudo terminals, child processes
port=$(free_port); serve $RUN socat -t20 TCP-LISTEN:$port,bind=127.0.0.1,fork,reuseaddr EXEC:'tr a-z A-Z'; wait_port $port || exit 1
for i in 1 2 3; do echo "line $i" | socat -t20 - TCP:127.0.0.1:$port; done; sleep 0.5 | $RUN socat -t5 - EXEC:"stty -a",pty,setsid,ctty | grep -c speed; stop $server
