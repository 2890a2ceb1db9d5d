# needs: make gcc
# tags: fast
# make -j2: a small project; dependencies, parallel recipes, a failing target, a rebuild
mkdir s; for i in $(seq 12); do printf '#include <stdio.h>\nint f%d(int x) { for (int i = 0; i < 9; i++) x = x * %d + i; return x; }\n' $i $((i + 2)) >s/f$i.c; done
{ for i in $(seq 12); do echo "int f$i(int);"; done; echo '#include <stdio.h>'; echo 'int main(void) { int s = 0;'; for i in $(seq 12); do echo "s += f$i(s + 1);"; done; echo 'printf("%d\n", s); return 0; }'; } >s/main.c
cat >Makefile <<'M'
OBJ = $(patsubst %.c,%.o,$(sort $(wildcard s/*.c)))
prog: $(OBJ) ; @gcc -o $@ $^ && echo linked
%.o: %.c ; @gcc -O1 -c -o $@ $< && echo $<
fail: ; @exit 3
count: ; @for i in 1 2 3; do echo $$i; done
M
$RUN make -j2 | sort; $RUN ./prog; touch s/f3.c; $RUN make -j2 | sort; $RUN make -s fail 2>/dev/null; echo "status $?"; $RUN make -s count
