# needs: strace gcc
# tags: fast
# strace inside: what it sees of a program, of its children, and of a program that it is attached to
cat >p.c <<'S'
#include <stdio.h>
#include <unistd.h>
#include <sys/wait.h>
int main(void) { write(1, "first\n", 6); chdir("/nowhere"); if (fork() == 0) { write(1, "child\n", 6); _exit(2); } int s; wait(&s); execl("/bin/echo", "echo", "last", (char *)0); return 1; }
S
gcc -o p p.c || skip "no compiler"
$RUN strace -f -o trace -e trace=write,chdir,execve,exit_group ./p; echo "status $?"
sed -E 's/^[0-9]+ +//; s/0x[0-9a-f]+/ADDR/g; s/SIGCHLD \{.*/SIGCHLD/; s/[0-9]+ vars/VARS/' trace | sort
$RUN strace -c -o counts true; echo "status $?"; grep -c execve counts
$RUN sh -c 'sleep 100 & it=$!; strace -e trace=none -o attached -p $it 2>/dev/null & for i in 1 2 3 4 5 6 7 8 9; do sleep 0.3; [ -e attached ] && break; done; sleep 0.5; kill $it; wait; grep -o "killed by SIGTERM" attached' 2>/dev/null
