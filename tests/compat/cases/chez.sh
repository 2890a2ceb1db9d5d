# needs: scheme
# chez scheme: native code compiled in the process
echo '(define (fib n) (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2))))) (display (fib 25)) (newline) (display (length (let loop ((i 0) (l (quote ()))) (if (= i 100000) l (loop (+ i 1) (cons (* i 1.5) l)))))) (newline) (collect) (display (guard (x (#t "caught")) (vector-ref (vector 1) 9))) (newline) (display ((compile (quote (lambda (x) (* x x)))) 13)) (newline) (exit 4)' >a.ss; $RUN scheme -q --script a.ss; echo "status $?"
