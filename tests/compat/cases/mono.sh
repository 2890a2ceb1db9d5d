# needs: mono mcs
# timeout: 120
# mono: .NET code compiled at run time, null checks by faults, threads
cat >a.cs <<'S'
using System; using System.Collections.Generic; using System.Linq; using System.Threading;
class A { int x; static int Fib(int n) { return n < 2 ? n : Fib(n - 1) + Fib(n - 2); } static int Deref(A a) { return a.x; }
  static int Main() { Console.WriteLine(Fib(27)); int c = 0; for (int i = 0; i < 300; i++) try { Deref(null); } catch (NullReferenceException) { c++; } Console.WriteLine(c);
    int z = 0; try { Console.WriteLine(1 / z); } catch (DivideByZeroException) { Console.WriteLine("zero"); }
    var d = new Dictionary<string, int>(); for (int i = 0; i < 50000; i++) { var k = "k" + i % 91; int v; d.TryGetValue(k, out v); d[k] = v + i; } Console.WriteLine(d["k7"]);
    long sum = 0; var ts = Enumerable.Range(0, 4).Select(t => new Thread(() => { for (int i = 0; i < 50000; i++) Interlocked.Add(ref sum, i * t); })).ToList(); ts.ForEach(t => t.Start()); ts.ForEach(t => t.Join()); Console.WriteLine(sum);
    var l = new List<byte[]>(); for (int i = 0; i < 2000; i++) { l.Add(new byte[10000]); if (i % 100 == 0) l.Clear(); } GC.Collect(); Console.WriteLine(Enumerable.Range(1, 1000).Where(i => i % 7 == 0).Sum()); return 6; } }
S
$RUN mcs -out:a.exe a.cs && $RUN mono a.exe; echo "status $?"
