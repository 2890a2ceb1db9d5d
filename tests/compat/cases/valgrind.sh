# needs: valgrind
# timeout: 200
# a translator inside: memcheck places its memory itself
$RUN valgrind -q --error-exitcode=3 /bin/echo hello; echo "status $?"
