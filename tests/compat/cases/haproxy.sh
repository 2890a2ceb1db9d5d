# needs: haproxy curl
port=$(free_port); bport=$(free_port)
mkdir w; echo hello >w/a; (cd w; exec /usr/bin/python3 -m http.server -b 127.0.0.1 $bport >/dev/null 2>&1) & be=$!
cat >h.cfg <<E
global
  nbthread 2
defaults
  mode http
  timeout connect 5s
  timeout client 5s
  timeout server 5s
frontend f
  bind 127.0.0.1:$port
  default_backend b
backend b
  server s 127.0.0.1:$bport
E
serve $RUN haproxy -f h.cfg -db; wait_port $port || exit 1
wait_port $bport
for i in 1 2 3 4 5 6 7 8 9 10; do curl -s http://127.0.0.1:$port/a; done
stop $server; kill $be
