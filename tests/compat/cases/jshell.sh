# needs: jshell
# timeout: 200
# a second JVM that is debugged through a socket; the first tells it to end with SIGTERM
printf 'int f(int n){return n<2?n:f(n-1)+f(n-2);}\nSystem.out.println(f(20))\nString x="a".repeat(3)\nSystem.out.println(x)\n/exit\n' | $RUN jshell -s - ; echo "status $?"
