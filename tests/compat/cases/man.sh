# needs: man groff
# tags: fast
# man: groff pipeline, seccomp sandbox of man-db
cat >x.1 <<'M'
.TH X 1 2024-01-01
.SH NAME
x \- a page
.SH DESCRIPTION
.B Bold
and
.I italic
text that is filled, over more than one line, so that the formatter has something to do.
.IP \(bu
an item
M
MANWIDTH=60 $RUN man -E UTF-8 -l ./x.1 | cat; $RUN man -w nothing-like-this 2>/dev/null; echo "status $?"
