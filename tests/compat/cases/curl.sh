# needs: curl
# curl from a small server of python3
mkdir w; seq 3000 >w/f; port=$(free_port); serve $RUN /usr/bin/python3 -m http.server -b 127.0.0.1 -d w $port; wait_port $port || exit 1; u=http://127.0.0.1:$port
$RUN curl -s $u/f | sum; $RUN curl -s -o /dev/null -w '%{http_code} %{size_download}\n' $u/none; $RUN curl -sf $u/none; echo "status $?"; $RUN curl -s --range 10-19 $u/f | wc -c; $RUN curl -s http://127.0.0.1:1/; echo "status $?"; stop $server
