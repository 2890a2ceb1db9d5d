# needs: luajit
# tags: fast
# luajit: compiled traces, FFI, side exits
cat >a.lua <<'S'
local ffi = require "ffi" ffi.cdef "int abs(int); typedef struct { int a; double b; } pair;"
local s = 0 for i = 1, 3e6 do s = s + i % 7 end print(s)
local a = ffi.new("pair[100]") for k = 1, 200 do for i = 0, 99 do a[i].a = a[i].a + i; a[i].b = a[i].b + i / 2 end end print(a[99].a, a[50].b, ffi.C.abs(-4))
local function fib(n) return n < 2 and n or fib(n - 1) + fib(n - 2) end print(fib(24))
local t = {} for i = 1, 20000 do t[#t + 1] = (i % 3 == 0) and "x" .. i or i end local c = 0 for _, v in ipairs(t) do if type(v) == "string" then c = c + #v end end print(c)
local cb = ffi.cast("int (*)(int)", function(x) return x * 3 end) print(cb(14)) print(pcall(function() local z = nil; for i = 1, 1000 do if i == 900 then return z.q end end end))
S
$RUN luajit a.lua; echo "status $?"
