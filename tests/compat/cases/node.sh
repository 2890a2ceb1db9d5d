# needs: node
# tags: fast
# timeout: 120
# node: compiled code, promises, buffers, workers, child processes, streams
cat >a.js <<'S'
const crypto = require('crypto'), zlib = require('zlib'), { execFileSync, spawn } = require('child_process'), { Worker, isMainThread, parentPort } = require('worker_threads'), http = require('http');
if (!isMainThread) { let s = 0; for (let i = 0; i < 1e6; i++) s = (s * 31 + i) | 0; parentPort.postMessage(s); return; }
function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); } console.log(fib(25));
let m = new Map(); for (let i = 0; i < 1e5; i++) m.set('k' + i % 997, i); console.log(m.size, [...m.values()].reduce((a, b) => a + b));
let arr = Float64Array.from({ length: 5e4 }, (_, i) => Math.sin(i)); arr.sort(); console.log(arr[100].toFixed(9));
console.log(crypto.createHash('sha256').update('x'.repeat(1e5)).digest('hex').slice(0, 16), zlib.gunzipSync(zlib.gzipSync('y'.repeat(1e5))).length);
console.log('a1b22'.replace(/\d+/g, d => d * 2), JSON.stringify({ a: [1n.toString(), null] }), execFileSync('echo', ['child']).toString().trim());
try { null.x } catch (e) { console.log(e.constructor.name) } (function deep() { try { deep() } catch (e) { } })(); console.log('deep');
console.log(new WebAssembly.Instance(new WebAssembly.Module(new Uint8Array([0,97,115,109,1,0,0,0,1,7,1,96,2,127,127,1,127,3,2,1,0,7,7,1,3,97,100,100,0,0,10,9,1,7,0,32,0,32,1,106,11]))).exports.add(2, 3));
(async () => {
  console.log(await new Promise(r => new Worker(__filename).on('message', r)));
  const s = http.createServer((q, r) => r.end(q.url)).listen(0, '127.0.0.1', async () => {
    const u = `http://127.0.0.1:${s.address().port}/`; const got = await Promise.all([1, 2, 3].map(i => new Promise(r => http.get(u + i, x => { let b = ''; x.on('data', d => b += d).on('end', () => r(b)) }))));
    console.log(got.join()); s.close(); process.exitCode = 5; });
})();
S
$RUN node a.js; echo "status $?"
