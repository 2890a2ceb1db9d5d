# needs: slapd ldapadd
# timeout: 100
port=$(free_port); mkdir db; cat >s.conf <<E
include /etc/ldap/schema/core.schema
modulepath /usr/lib/ldap
moduleload back_mdb
pidfile $PWD/pid
database mdb
suffix "dc=a"
rootdn "cn=r,dc=a"
rootpw x
directory $PWD/db
maxsize 10485760
E
serve $RUN slapd -d 0 -h ldap://127.0.0.1:$port -f s.conf; wait_port $port || exit 1
{ printf 'dn: dc=a\nobjectClass: dcObject\nobjectClass: organization\no: a\ndc: a\n\n'; for i in 1 2 3; do printf "dn: ou=u$i,dc=a\nobjectClass: organizationalUnit\nou: u$i\n\n"; done; } >a.ldif
$RUN ldapadd -x -H ldap://127.0.0.1:$port -D cn=r,dc=a -w x -f a.ldif; $RUN ldapsearch -x -LLL -H ldap://127.0.0.1:$port -b dc=a dn | sort; stop $server
