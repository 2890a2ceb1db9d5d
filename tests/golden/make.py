#!/usr/bin/python3
"""Writes the golden recordings of this folder: small synthetic logs, right and wrong in one way each.

    tests/golden/make.py [FOLDER]      (check.sh --update then writes what reprise says about them)

They are committed, so that a later version of Reprise is tried on what an earlier one may have written. The bytes are laid
out here after docs/formats.md, without the C sources; zstd's output may differ from release to release."""

import json, os, struct, sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "tools"))
sys.dont_write_bytecode = True
from read_log import HEADER, EVENTS, OBJECT, END, compress, xxh3_64, xxh3_128

BEGAN = 1767225600 * 10**9
FOLDER = sys.argv[1] if __name__ == "__main__" and len(sys.argv) > 1 else HERE


def frame(kind, raw, stream=0, position=0, magic=b"RPF1", version=1, raw_len=None, length=None, payload=None, code=None):
    """A frame with right checksums, whatever is wrong with the rest."""
    packed = compress(raw) if payload is None else payload
    stored = raw if packed is None else packed
    head = struct.pack("<4sBBHQQIIQ", magic, kind, (packed is not None) if code is None else code, version, stream, position,
                       len(raw) if raw_len is None else raw_len, len(stored) if length is None else length, xxh3_64(stored))
    return head + struct.pack("<Q", xxh3_64(head)) + stored


def event(kind, payload=b"", thread=0, ticks=0, flags=0, code=0, regs=0x1234abcd, size=None):
    payload += bytes(-len(payload) % 8)
    return struct.pack("<BBHIIIQ", kind, flags, code, 24 + len(payload) if size is None else size, thread, regs, ticks) + payload


def start(pid, ppid, exe, args, maps, memory, parent=2**64 - 1):
    return event(1, struct.pack("<4I13Q", pid, ppid, maps, memory, 0x401000, 0x7ffffffde000, 0x202, 0x4c0000, 0, 0, parent,
                                0x7ffffffdef00, 0x7ffffffdf000, 0x7ffffffdf100, 0x7ffffffdf100 + len(args), 0, 0)
                 + bytes([0, 1, 2]) + bytes(61) + os.path.basename(exe).encode().ljust(16, b"\0") + exe.encode().ljust(512, b"\0"))


def memory(addr, data, kind=4, **more):
    return event(kind, struct.pack("<QII", addr, len(data), 0) + data, **more)


def mapping(begin, end, prot, name, contents=None):
    object_name = bytes(16) if contents is None else bytes.fromhex(xxh3_128(contents))[::-1]
    return event(3, struct.pack("<QQQII", begin, end, 0, prot, 2) + object_name + struct.pack("<5Q", 65024, 7, 11, 5, 6)
                 + name.ljust(16, b"\0"))


def syscall(number, args, ret, outs=0, out_fd=0, seq=0, **more):
    args = list(args) + [0] * (6 - len(args))
    return event(5, struct.pack("<q6QIIQ", ret, *args, outs, out_fd, seq), code=number, **more)


def child(kind, stream, number=0, **more):
    return event(kind, struct.pack("<QII", stream, number, 0), **more)


def ending(kind, status, **more):
    return event(kind, struct.pack("<iI", status, 0), **more)


def signal(kind, number, **more):
    return event(kind, struct.pack("<iii", number, 0, 128).ljust(128, b"\0") + struct.pack("<3Q", 4, 14, 0x10), code=number, **more)


CONTENTS = b"no real file"
HEAD = frame(HEADER, json.dumps({
    "version": 1, "reprise": "0.1", "command": ["/bin/demo", "a b", "it's", "\x1b[31m"], "path": "/bin/demo", "directory": "/tmp",
    "began_ns": BEGAN, "host": "golden", "kernel": "Linux 6.1", "recorder": "order"}).encode())
TAIL = frame(END, json.dumps({"status": 3 << 8, "reason": "end", "streams": 3, "ended_ns": BEGAN + 1500000000}).encode())
KEPT = frame(OBJECT, bytes.fromhex(xxh3_128(CONTENTS))[::-1]
             + struct.pack("<5QII", len(CONTENTS), 65024, 7, 5, 6, 0o100755, len(b"/bin/demo")) + b"/bin/demo")

ARGS = b"/bin/demo\0a b\0it's\0\x1b[31m\0"
STREAM0 = [
    start(100, 1, "/bin/demo", ARGS, 1, 2), mapping(0x400000, 0x402000, 5, b"demo", CONTENTS),
    memory(0x7ffffffdf000, bytes(256) + ARGS[:12]), memory(0x7ffffffdf10c, ARGS[12:]),
    syscall(0, (0, 0x500000, 64), 5, outs=1, ticks=900), memory(0x500000, b"hello", 6, ticks=900),
    syscall(56, (0x3d0f00, 0x600000), 101, ticks=1000), child(8, 0, 1, ticks=1000),
    event(14, ticks=1500), event(15, thread=1, ticks=0), syscall(1, (1, 0x500000, 5), 5, out_fd=1, seq=0, thread=1, ticks=77, flags=8),
    signal(12, 10, thread=1, ticks=99), event(15, ticks=1500),
    event(16, struct.pack("<5Q", 7, 0, 0, 9, 0), code=1, ticks=1600), syscall(57, (), 102, ticks=2000), child(7, 1, ticks=2000),
    event(20, bytes.fromhex(xxh3_128(CONTENTS))[::-1] + struct.pack("<6Q", 65024, 7, 12, 5, 6, 0), ticks=2100),
    event(17, struct.pack("<QQ", 0xfeedface, 4096), ticks=2200), event(18, struct.pack("<QQQII", 1, 2, 3, 1, 0), ticks=2300),
    event(19, struct.pack("<QQQII", 1, 2, 4, 0, 0), ticks=2400), ending(10, 0, thread=1, ticks=120),
    event(23, flags=1, ticks=2450), memory(0x500008, b"poked", 24, ticks=2450),
    event(25, struct.pack("<22Q", *range(16), 0x401000, 0x202, 0x7000, 0, 1 << 9, 8) + b"extended", ticks=2450), event(15, code=10, ticks=2450),
    syscall(2, (0x500000,), -2, ticks=2500), ending(11, 3 << 8, ticks=3000)]
STREAM1 = [event(2, struct.pack("<IIQII", 102, 100, 0, 0, 0), ticks=2000), child(9, 2, ticks=2050)]
STREAM2 = [start(102, 100, "/bin/child", b"child\0", 0, 0, parent=1), signal(13, 11, ticks=40), ending(11, 11, ticks=40)]


def streams(*lists):
    return b"".join(frame(EVENTS, b"".join(events), stream=n) for n, events in enumerate(lists))


def two_frames():
    first, second = b"".join(STREAM0[:10]), b"".join(STREAM0[10:])
    return frame(EVENTS, first) + frame(EVENTS, second, position=len(first))


GOOD = HEAD + KEPT + two_frames() + streams(STREAM0, STREAM1, STREAM2)[len(streams(STREAM0)):] + TAIL
BODY = HEAD + KEPT + streams(STREAM0, STREAM1, STREAM2)


def flipped(data, at):
    return data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1:]


def bad_event(wrong):
    return HEAD + streams(STREAM0[:5] + [wrong] + STREAM0[5:]) + TAIL


FILES = {
    "good": GOOD,
    "no_end": BODY,
    "header_only": HEAD,
    "torn_head": BODY + TAIL[:20],
    "torn_payload": BODY[:-30],
    "flipped_head": flipped(BODY + TAIL, len(HEAD + KEPT) + 30),
    "flipped_payload": flipped(BODY + TAIL, len(HEAD + KEPT) + 100),
    "flipped_header": flipped(GOOD, 60),
    "behind_end": GOOD + KEPT,
    "junk_behind": GOOD + b"junk" * 20,
    "length_beyond": HEAD + frame(EVENTS, b"".join(STREAM0), length=100000, raw_len=200000) + TAIL,
    "length_huge": HEAD + frame(EVENTS, b"".join(STREAM0), raw_len=(4 << 20) + 8) + TAIL,
    "length_zero": HEAD + frame(EVENTS, b"x" * 8, raw_len=0, length=0, code=0) + TAIL,
    "bad_zstd": HEAD + frame(EVENTS, bytes(800), payload=b"this is no zstd frame") + TAIL,
    "short_zstd": HEAD + frame(EVENTS, bytes(800), raw_len=1600) + TAIL,
    "bad_kind": HEAD + frame(9, b"what?") + TAIL,
    "gap": HEAD + frame(EVENTS, b"".join(STREAM0), position=24) + TAIL,
    "second_header": HEAD + HEAD + TAIL,
    "bad_object": HEAD + frame(OBJECT, bytes(64)) + TAIL,
    "object_path": HEAD + frame(OBJECT, bytes([1]) * 60 + struct.pack("<I", 5000) + b"/x") + TAIL,
    "end_no_json": BODY + frame(END, b'{"status": '),
    "header_no_json": frame(HEADER, b"[1, 2") + TAIL,
    "header_deep": frame(HEADER, b'{"a": ' + b"[" * 1000 + b"]" * 1000 + b"}") + TAIL,
    "no_header": KEPT + TAIL,
    "version": frame(HEADER, b'{"version": 2}', version=2),
    "version_later": BODY + frame(EVENTS, bytes(24), stream=7, version=2),
    "empty": b"",
    "not_ours": b"#!/bin/sh\necho this is a script, and longer than a head\n",
    "event_odd": bad_event(event(14, size=23)),
    "event_tiny": bad_event(event(14, size=16)),
    "event_large": bad_event(event(14, size=65544)),
    "event_behind": bad_event(event(14, size=65528)),
    "event_kind": bad_event(event(77)),
    "event_small": bad_event(event(5, bytes(16))),
    "event_len": bad_event(event(6, struct.pack("<QII", 0x500000, 0xffffffff, 0) + b"12345678")),
    "event_poke_len": bad_event(event(24, struct.pack("<QII", 0x500000, 16, 0) + b"12345678")),
    "event_regs_len": bad_event(event(25, struct.pack("<22Q", *range(21), 24) + b"12345678")),
    "event_thread": bad_event(event(14, thread=0xffffffff)),
    "no_start": HEAD + streams(STREAM0[4:]) + TAIL,
    "own_parent": HEAD + frame(EVENTS, event(2, struct.pack("<IIQII", 5, 5, 3, 0, 0)), stream=3) + TAIL,
}

if __name__ == "__main__":
    for name, data in FILES.items():
        with open(os.path.join(FOLDER, name + ".log"), "wb") as f:
            f.write(data)
