# needs: expect
# expect: drives a program on a pseudo terminal
cat >a.exp <<'S'
set timeout 20
spawn -noecho sh -c {read -p "name? " n; echo "hello $n"; read x; exit 7}
expect "name? "
send "you\r"
expect "hello you" { puts "\ngreeted" }
send "\r"
expect eof
lassign [wait] pid id os status
puts "ended with $status"
spawn -noecho cat
send "abc\r"; expect "abc"; send \003
expect eof
puts "interrupted [lindex [wait] end]"
S
$RUN expect a.exp | tr -d '\r' | grep -E 'greeted|ended|interrupted'; echo "status ${PIPESTATUS[0]}"
