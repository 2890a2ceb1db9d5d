# needs: go
# timeout: 180
# a Go program: goroutines, channels, preemption of loops, nil pointer panics, garbage collection, child processes
cat >a.go <<'S'
package main
import ("fmt"; "os"; "os/exec"; "runtime"; "sort"; "sync"; "time")
type T struct{ x int }
func deref(t *T) (err error) { defer func() { if r := recover(); r != nil { err = r.(error) } }(); _ = t.x; return nil }
func deep(n int) int { if n == 0 { return 0 }; var pad [64]int; pad[n%64] = 1; return deep(n-1) + pad[n%64] }
func main() {
	var wg sync.WaitGroup; var mu sync.Mutex; sum := 0
	for i := 0; i < 200; i++ { wg.Add(1); go func(i int) { defer wg.Done(); for k := 0; k < 500; k++ { mu.Lock(); sum += i * k % 7; mu.Unlock() } }(i) }; wg.Wait(); fmt.Println(sum)
	stop := false; go func() { for !stop { } }(); time.Sleep(20 * time.Millisecond); runtime.GC(); fmt.Println("preempted")
	fmt.Println(deref(nil), deref(&T{1}), deep(100000))
	c := make(chan int); go func() { for i := 0; i < 5; i++ { c <- i * i }; close(c) }(); for v := range c { fmt.Print(v, " ") }; fmt.Println()
	m := map[string]int{}; for i := 0; i < 50000; i++ { m[fmt.Sprint(i%997)] += i }; k := make([]string, 0); for s := range m { k = append(k, s) }; sort.Strings(k); fmt.Println(len(k), m[k[5]])
	b := [][]byte{}; for i := 0; i < 2000; i++ { b = append(b, make([]byte, 10000)); if i%100 == 0 { b = nil } }; out, _ := exec.Command("echo", "child").Output(); fmt.Print(string(out))
	select { case <-time.After(30 * time.Millisecond): fmt.Println("timer") }; os.Exit(4)
}
S
export GOFLAGS=-mod=mod GOCACHE=$PWD/cache GOPATH=$PWD/go GO111MODULE=off; go build -o a a.go && $RUN ./a; echo "status $?"
