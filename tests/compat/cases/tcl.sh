# needs: tclsh
# tags: fast
# tcl: lists, strings, events, exec
cat >a.tcl <<'S'
proc fib n { expr {$n < 2 ? $n : [fib [expr {$n-1}]] + [fib [expr {$n-2}]]} }
puts [fib 16]; set l {}; for {set i 0} {$i < 500} {incr i} { lappend l [expr {$i * 37 % 101}] }; puts [lsort -integer -unique $l]
puts [regexp -all -inline {\d+} "a1b22c333"]; after 30 {set done yes}; vwait done; puts $done; puts [exec echo executed]; puts [catch {error bad} m],$m; exit 2
S
$RUN tclsh a.tcl; echo "status $?"
