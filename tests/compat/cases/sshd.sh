# needs: /usr/sbin/sshd ssh ssh-keygen
# sshd on loopback: privilege separation, key exchange, commands, file copy
[ "$(id -u)" = 0 ] && mkdir -p /run/sshd
ssh-keygen -q -t ed25519 -N '' -f host; ssh-keygen -q -t ed25519 -N '' -f id; port=$(free_port); chmod 700 .; cp id.pub auth
printf 'Port %s\nListenAddress 127.0.0.1\nHostKey %s/host\nPidFile none\nAuthorizedKeysFile %s/auth\nStrictModes no\nUsePAM no\nPasswordAuthentication no\nPermitRootLogin yes\nSubsystem sftp internal-sftp\n' $port "$PWD" "$PWD" >conf
serve $RUN /usr/sbin/sshd -D -e -f "$PWD/conf"; wait_port $port || exit 1
s() { ssh -F none -i id -p $port -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR -o BatchMode=yes "$(id -un)@127.0.0.1" "$@"; }
s 'echo connected; exit 3'; echo "status $?"; seq 20000 | s 'cat | sha256sum'; s 'kill -TERM $$'; echo "status $?"; s 'for i in 1 2 3; do echo $i; done' | tail -1
seq 500 >up; scp -q -F none -i id -P $port -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR up "$(id -un)@127.0.0.1:$PWD/down" && cmp up down && echo copied
kill -TERM $server; wait $server; echo "server ended: $?"
