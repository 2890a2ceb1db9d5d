# needs: /usr/bin/python3
# python3: multiprocessing, shared memory, asyncio, sockets, signals
cat >a.py <<'S'
import asyncio, multiprocessing as mp, os, signal, socket, time
from multiprocessing import shared_memory
def square(x): return x * x
def fill(name): s = shared_memory.SharedMemory(name); s.buf[:5] = b"hello"; s.close()
async def echo():
    async def on(r, w): w.write((await r.readline()).upper()); await w.drain(); w.close()
    server = await asyncio.start_server(on, "127.0.0.1", 0); port = server.sockets[0].getsockname()[1]
    async def ask(i):
        r, w = await asyncio.open_connection("127.0.0.1", port); w.write(b"line %d\n" % i); return (await r.readline()).decode().strip()
    print(sorted(await asyncio.gather(*[ask(i) for i in range(10)]))[:3]); server.close()
if __name__ == "__main__":
    for how in ("fork", "spawn"):
        with mp.get_context(how).Pool(2) as p: print(how, sum(p.map(square, range(200))))
    s = shared_memory.SharedMemory(create=True, size=100); p = mp.Process(target=fill, args=(s.name,)); p.start(); p.join(); print(bytes(s.buf[:5])); s.close(); s.unlink()
    q = mp.Queue(); ps = [mp.Process(target=q.put, args=(i,)) for i in range(5)]; [x.start() for x in ps]; print(sorted(q.get() for _ in ps)); [x.join() for x in ps]
    asyncio.run(echo())
    got = []; signal.signal(signal.SIGALRM, lambda *a: got.append(1)); signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
    while len(got) < 5: pass
    signal.setitimer(signal.ITIMER_REAL, 0); print("alarms")
    p = mp.Process(target=time.sleep, args=(100,)); p.start(); p.terminate(); p.join(); print(p.exitcode)
S
$RUN /usr/bin/python3 a.py; echo "status $?"
