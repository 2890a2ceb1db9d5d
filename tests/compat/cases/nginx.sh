# needs: nginx ab
# tags: fast
# nginx: two workers under load, static files, an error page, reload, graceful stop
port=$(free_port); mkdir www; seq 2000 >www/f.txt; echo hello >www/index.html
cat >conf <<C
worker_processes 2; daemon off; pid $PWD/pid; error_log $PWD/error.log; events { worker_connections 128; }
http { access_log off; client_body_temp_path $PWD/t1; proxy_temp_path $PWD/t2; fastcgi_temp_path $PWD/t3; uwsgi_temp_path $PWD/t4; scgi_temp_path $PWD/t5; gzip on; gzip_types text/plain; gzip_min_length 10;
server { listen 127.0.0.1:$port; root $PWD/www; location /back { proxy_pass http://127.0.0.1:$port/; } location /no { return 403 "no\n"; } } }
C
serve $RUN nginx -e error.log -p "$PWD" -c conf; wait_port $port || exit 1; u=http://127.0.0.1:$port
ab -q -n 2000 -c 20 -k $u/f.txt 2>/dev/null | grep -E '^(Complete|Failed|Document Length)'; ab -q -n 300 -c 5 $u/back 2>/dev/null | grep -E '^(Complete|Failed)'
get() { exec 3<>/dev/tcp/127.0.0.1/$port; printf 'GET %s HTTP/1.0\r\n\r\n' "$1" >&3; sed -n '1p;$p' <&3; exec 3>&-; }
get /index.html; get /no; get /missing; kill -HUP $server; sleep 0.5; get /back; kill -QUIT $server; wait $server; echo "server ended: $?"
