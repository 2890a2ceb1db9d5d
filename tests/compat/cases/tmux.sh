# needs: tmux
# tmux: a server, a terminal inside, commands sent to it
t="$RUN tmux -L reprise-$$ -f /dev/null"; $t new-session -d -x 80 -y 24 'sh'; $t send-keys 'echo $((6 * 7)) >out; exit' Enter; for i in $(seq 100); do [ -s out ] && break; sleep 0.1; done; cat out; for i in $(seq 50); do $t has-session 2>/dev/null || break; sleep 0.1; done; $t has-session 2>/dev/null; echo "status $?"; $t kill-server 2>/dev/null; echo ended
