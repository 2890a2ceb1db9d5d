# needs: emacs
# timeout: 120
cat >a.el <<'E'
;;; -*- lexical-binding: t -*-
(defun fib (n) (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2)))))
(princ (format "%d\n" (fib 20)))
(with-temp-buffer (call-process "sh" nil t nil "-c" "echo out; exit 3") (princ (buffer-string)))
(let ((p (make-process :name "x" :command '("cat") :buffer (get-buffer-create "o") :connection-type 'pty)))
  (process-send-string p "hello\n") (process-send-eof p) (while (process-live-p p) (accept-process-output p 0.1)) (while (accept-process-output p 0.1)))
(princ (with-current-buffer "o" (buffer-string)))
(let ((th (make-thread (lambda () (* 6 7))))) (princ (format "%s\n" (thread-join th))))
(byte-compile-file "a.el")
(garbage-collect)
E
$RUN emacs -Q --batch -l a.el 2>/dev/null; echo "status $?"; ls a.elc
