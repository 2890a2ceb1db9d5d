# needs: varnishd curl cc
# timeout: 120
# trampolines on stacks beside threads in accept, memory shared with the manager
port=$(free_port); bport=$(free_port); mkdir w; echo hello >w/a; (cd w; exec /usr/bin/python3 -m http.server -b 127.0.0.1 $bport >/dev/null 2>&1) & be=$!
mkdir v; serve $RUN varnishd -F -n $PWD/v -a 127.0.0.1:$port -b 127.0.0.1:$bport -j none -s malloc,20m -p thread_pool_min=5 -p thread_pools=1; wait_port $port || exit 1
wait_port $bport; for i in 1 2 3 4 5; do curl -s http://127.0.0.1:$port/a; done; stop $server; kill $be
