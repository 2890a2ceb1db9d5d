# needs: stress-ng
# timeout: 400
# stress-ng: hundreds of unusual uses of the kernel and the processor, each for a moment, checked by itself; not "resources", which takes all of the disk,
# the recording's too, and not "mutex", which finds no thread once in thirty runs without us, too
for s in cpu matrix qsort str vecmath vecfp vecshuf fp branch funccall funcret icache longjmp nop opcode pthread fork vfork clone exec mmap mremap mprotect stack brk malloc memcpy pipe poll epoll eventfd signal sigfd sigq sigsuspend sigsegv sigfpe sigtrap sigchld sigabrt timer timerfd itimer futex sem sem-sysv msg mq shm shm-sysv sock sockpair udp splice tee sendfile inotify prctl seccomp set chdir dir dup fcntl flock getrandom getdent null zero switch yield mincore msync madvise membarrier personality procfs sleep tsc vdso wait zlib; do
    timeout 60 $RUN stress-ng --$s 1 --$s-ops 20 --timeout 3 --verify -q >/dev/null 2>err; echo "$s $?"
done
