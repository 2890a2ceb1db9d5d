# needs: openssl
# openssl s_server and s_client over TLS 1.3
openssl req -x509 -newkey rsa:2048 -nodes -keyout k -out c -subj /CN=localhost -days 3 2>/dev/null; port=$(free_port); serve $RUN openssl s_server -accept 127.0.0.1:$port -key k -cert c -www -quiet; wait_port $port || exit 1
for i in 1 2 3; do printf 'GET / HTTP/1.0\r\n\r\n' | timeout 20 $RUN openssl s_client -connect 127.0.0.1:$port -CAfile c -quiet -verify_return_error 2>/dev/null | grep -aoE '^(HTTP/1.0 200|New, TLSv1.3, Cipher is [A-Z0-9_]*)' | sort -u; done; stop $server
