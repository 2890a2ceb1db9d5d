# needs: sbcl
# sbcl: a Lisp compiler in the process, a moving garbage collector that works by faults, conditions, threads
cat >a.lisp <<'S'
(defun fib (n) (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2)))))
(print (fib 24))
(let ((h (make-hash-table :test 'equal))) (dotimes (i 50000) (incf (gethash (format nil "k~a" (mod i 97)) h 0) i)) (print (gethash "k5" h)))
(print (length (loop repeat 300 collect (make-array 10000 :initial-element 1)))) (gc :full t)
(print (handler-case (/ 1 (- 2 2)) (division-by-zero () :zero))) (print (handler-case (car 5) (type-error () :type)))
(print (handler-case (labels ((deep (n) (+ 1 (deep (+ n 1))))) (deep 0)) (storage-condition () :deep)))
(print (funcall (compile nil '(lambda (x) (* x x))) 12)) (print (expt 3 200))
(let ((ths (loop for i below 4 collect (let ((i i)) (sb-thread:make-thread (lambda () (loop for k below 100000 sum (* k i)))))))) (print (mapcar #'sb-thread:join-thread ths)))
(sb-ext:exit :code 5)
S
$RUN sbcl --noinform --no-sysinit --no-userinit --disable-debugger --load a.lisp 2>/dev/null; echo "status $?"
