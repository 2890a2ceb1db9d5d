# needs: guile
# guile: just-in-time compiled Scheme, continuations
export GUILE_AUTO_COMPILE=0
$RUN guile --no-auto-compile -c '(define (fib n) (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2))))) (display (fib 23)) (newline) (define k #f) (define n 0) (display (+ 1 (call/cc (lambda (c) (set! k c) 1)))) (newline) (set! n (+ n 1)) (if (< n 3) (k n)) (display (expt 7 100)) (newline) (display (catch #t (lambda () (vector-ref (vector 1) 5)) (lambda (key . args) key))) (newline) (display (apply + (map string-length (map number->string (iota 5000))))) (newline) (exit 3)'
echo "status $?"
