# For the cases of tests/compat: free ports, servers that are waited for and ended, and sums of outputs.
set -u

free_port() { /usr/bin/python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

servers=()
# serve COMMAND...: starts it in the background, in a process group of its own (some signal all of theirs); $server is its id
serve() {
    setsid "$@" >>server.log 2>&1 </dev/null &
    server=$!
    servers+=($server)
}

# wait_port PORT: until something listens there; prints the server's log and fails after 40 seconds
wait_port() {
    local i
    for ((i = 0; i < 400; i++)); do
        (exec 3<>/dev/tcp/127.0.0.1/"$1") 2>/dev/null && return 0
        kill -0 "$server" 2>/dev/null || break
        sleep 0.1
    done
    echo "the server does not answer" >&2
    tail -5 server.log >&2
    return 1
}

# stop PID: asks it to end, waits, and prints how it ended
stop() {
    kill -TERM "$1" 2>/dev/null
    local i
    for ((i = 0; i < 200; i++)); do kill -0 "$1" 2>/dev/null || break; sleep 0.1; done
    kill -KILL "$1" 2>/dev/null && echo "did not end"
    wait "$1"
    echo "server ended: $?"
}

end_servers() { local p; for p in ${servers[@]+"${servers[@]}"}; do kill -KILL -- "-$p" 2>/dev/null || kill -KILL "$p" 2>/dev/null; done; }
trap end_servers EXIT

skip() { echo "$*" >&2; exit 77; }
sum() { sha256sum | cut -c1-16; }
