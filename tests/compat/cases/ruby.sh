# needs: ruby
# tags: fast
# ruby: blocks, fibers, threads, regular expressions, exceptions, fork
cat >a.rb <<'S'
require 'json'; require 'digest'; require 'set'
puts (1..200).select { |n| (2..Math.sqrt(n)).none? { |d| (n % d).zero? } }.sum
puts JSON.generate(JSON.parse('{"a":[1,2,{"b":null}]}')), Digest::SHA256.hexdigest("x" * 1000)[0, 16]
f = Fiber.new { 3.times { |i| Fiber.yield i }; :done }; p 4.times.map { f.resume }
q = Queue.new; t = 4.times.map { |i| Thread.new { 100.times { |k| q << i * k } } }; t.each(&:join); s = 0; s += q.pop until q.empty?; p s
p "foo bar baz".gsub(/b(\w)/) { $1.upcase }, "x".ljust(5, "."), 2**200, 10.fdiv(3).round(6)
begin; raise ArgumentError, "no"; rescue => e; puts e.message; ensure puts "ensured"; end
def deep(n) = deep(n + 1); begin; deep(0); rescue SystemStackError; puts "too deep"; end
pid = fork { exit 7 }; Process.wait pid; p $?.exitstatus; p `echo sub`.chomp; p ObjectSpace.garbage_collect.nil?; exit 3
S
$RUN ruby a.rb; echo "status $?"
