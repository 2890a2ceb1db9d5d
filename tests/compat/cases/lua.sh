# needs: lua5.4
# tags: fast
# lua: tables, closures, coroutines, strings, errors
cat >a.lua <<'S'
local t = {} for i = 1, 20000 do t[i] = (i * 7919) % 10007 end table.sort(t) print(t[1], t[10000], #t)
local co = coroutine.wrap(function() for i = 1, 3 do coroutine.yield(i * i) end end) print(co(), co(), co())
print(("the quick fox"):gsub("%w+", function(w) return w:upper() end), string.format("%5.2f|%x", 3.14159, 255))
print(pcall(error, { code = 2 })) print(select(2, pcall(function() local x = nil; return x.y end)))
local m = setmetatable({}, { __index = function(_, k) return k * 2 end }) print(m[21], 7 // 2, 1 << 40, 2^53)
local function deep(n) return deep(n + 1) + 1 end print(pcall(deep, 0) == false) os.exit(3)
S
$RUN lua5.4 a.lua | grep -v table:; $RUN lua5.4 -e 'os.exit(5)'; echo "status $?"
