# needs: apache2 ab
# apache2: event workers under load, prefork too; graceful stop
m=/usr/lib/apache2/modules; [ -d $m ] || skip "no modules"
for mpm in event prefork; do
    port=$(free_port); mkdir -p www logs; seq 1000 >www/f.txt
    cat >conf <<C
ServerRoot "$PWD"
ServerName localhost
Listen 127.0.0.1:$port
PidFile $PWD/pid
Mutex file:$PWD default
LoadModule mpm_${mpm}_module $m/mod_mpm_$mpm.so
LoadModule authz_core_module $m/mod_authz_core.so
LoadModule dir_module $m/mod_dir.so
User nobody
Group nogroup
ErrorLog $PWD/logs/error
DocumentRoot "$PWD/www"
C
    serve $RUN apache2 -f "$PWD/conf" -D FOREGROUND; wait_port $port || { tail -3 logs/error >&2; exit 1; }
    ab -q -n 1000 -c 10 http://127.0.0.1:$port/f.txt 2>/dev/null | grep -E '^(Complete|Failed|Document Length)'
    kill -TERM $server; wait $server; echo "$mpm ended: $?"
done
