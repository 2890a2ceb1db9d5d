# needs: java javac
# timeout: 180
# java: compiling, the JIT at work, null checks, stack overflow, threads, collections, garbage collection
cat >A.java <<'S'
import java.util.*; import java.util.concurrent.*; import java.util.stream.*;
public class A {
    static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
    static int depth; static void deep() { depth++; deep(); }
    static int len(String s) { return s.length(); }
    interface Shape { double area(); } record Sq(double s) implements Shape { public double area() { return s * s; } } record Ci(double r) implements Shape { public double area() { return 3 * r * r; } }
    public static void main(String[] a) throws Exception {
        System.out.println(fib(30));
        int npe = 0; for (int i = 0; i < 50000; i++) try { len(i % 1000 == 999 ? null : "abc"); } catch (NullPointerException e) { npe++; } System.out.println(npe);
        try { deep(); } catch (StackOverflowError e) { System.out.println(depth > 500); }
        int div = 0; for (int i = 0; i < 20000; i++) try { div += 100 / (i % 7); } catch (ArithmeticException e) { div--; } System.out.println(div);
        Map<String, Integer> m = new TreeMap<>(); for (int i = 0; i < 100000; i++) m.merge("k" + i % 37, i, Integer::sum); System.out.println(m.get("k5"));
        ExecutorService x = Executors.newFixedThreadPool(4); List<Future<Long>> f = new ArrayList<>(); for (int t = 0; t < 8; t++) { int n = t; f.add(x.submit(() -> LongStream.range(0, 200000).map(v -> v * n % 17).sum())); }
        long s = 0; for (Future<Long> r : f) s += r.get(); x.shutdown(); System.out.println(s);
        List<byte[]> keep = new ArrayList<>(); for (int i = 0; i < 3000; i++) { byte[] b = new byte[20000]; if (i % 50 == 0) keep.add(b); } System.gc(); System.out.println(keep.size());
        double area = 0; for (int i = 0; i < 200000; i++) { Shape sh = i % 2 == 0 ? new Sq(i % 10) : new Ci(i % 10); area += sh.area(); } System.out.println(area);
        Thread t = new Thread(() -> { try { Thread.sleep(100000); } catch (InterruptedException e) { System.out.println("interrupted"); } }); t.start(); t.interrupt(); t.join();
        System.out.println(IntStream.range(0, 100000).parallel().filter(i -> i % 3 == 0).count()); Runtime.getRuntime().addShutdownHook(new Thread(() -> System.out.println("hook"))); System.exit(6);
    }
}
S
$RUN javac A.java && $RUN java -Xmx256m A; echo "status $?"
