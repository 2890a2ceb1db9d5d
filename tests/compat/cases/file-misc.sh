# tags: fast
# needs: file dpkg-query
# file, dpkg-query, getent, ldd, id, ps: programs that read a lot of the system
$RUN file -b /bin/sh /etc/passwd /usr/bin/ldd | cut -c1-40; $RUN dpkg-query -W -f '${Package}\n' coreutils bash; $RUN getent passwd root | cut -d: -f1,3,7; $RUN ldd /bin/ls | sed 's/(0x.*//' | sort; $RUN id -u; $RUN ps -o comm= -p $$; $RUN locale -a | head -1; $RUN iconv -f latin1 -t utf8 <<<$'\xe9'; $RUN getconf PAGESIZE; $RUN hostname >/dev/null; $RUN uname -sm; $RUN which sh >/dev/null; echo "status $?"
