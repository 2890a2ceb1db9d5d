# needs: php
# tags: fast
# php: arrays, strings, regular expressions, exceptions, json
cat >a.php <<'S'
<?php $a = []; for ($i = 0; $i < 20000; $i++) $a[] = ($i * 7919) % 10007; sort($a); echo $a[777], " ", array_sum($a), " ", md5(implode(",", $a)), "\n";
echo preg_replace_callback('/\d+/', fn($m) => $m[0] * 2, "a1 b22 c333"), "\n"; echo json_encode(["x" => [1, 2.5, null, "é"]]), "\n";
function gen() { for ($i = 0; $i < 3; $i++) yield $i => $i * $i; } foreach (gen() as $k => $v) echo "$k=$v "; try { intdiv(1, 0); } catch (DivisionByZeroError $e) { echo $e->getMessage(), "\n"; }
echo str_repeat("=", 20), sprintf("%'.10d|%.4f", 42, M_PI), "\n"; exit(4);
S
$RUN php a.php; echo "status $?"
