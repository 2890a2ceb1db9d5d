#!/usr/bin/python3
"""A second reader of recordings, written after docs/formats.md and not after the C sources.

    tools/read_log.py DIR          checks everything that the document promises, prints a summary
    tools/read_log.py --raw DIR    one JSON object for each frame, as `reprise dump --raw --json` prints them
    tools/read_log.py --json DIR   one JSON object for each event: what `reprise dump --json` prints, as far as it is here
    tools/read_log.py --pack FILE  checks a packed recording, prints what is in it
    tools/read_log.py --checkpoints DIR    checks checkpoints, prints one line for each: its place, and a hash of all it tells

Exit status: 0 whole, 1 damaged (what comes before the damage was printed), 2 cannot be used at all."""

import ctypes, json, os, struct, sys

FRAME_RAW_MAX, EVENT_MAX, VERSION = 4 << 20, 65536, 1
HEAD = struct.Struct("<4sBBHQQIIQQ")
HEADER, EVENTS, OBJECT, END = 1, 2, 3, 4
PACK_HEADER, PACK_LOG, PACK_OBJECT, PACK_DATA, PACK_END, PACK_FILE = 16, 17, 18, 19, 20, 21
FRAME_NAMES = {HEADER: "HEADER", EVENTS: "EVENTS", OBJECT: "OBJECT", END: "END", PACK_HEADER: "PACK_HEADER",
               PACK_LOG: "PACK_LOG", PACK_OBJECT: "PACK_OBJECT", PACK_DATA: "PACK_DATA", PACK_END: "PACK_END",
               PACK_FILE: "PACK_FILE"}

EVENT = struct.Struct("<BBHIIIQ")
KINDS = {  # number: name, bytes of the struct behind the head
    1: ("START", 712), 2: ("FORKED", 24), 3: ("MAP", 104), 4: ("MEMORY", 16), 5: ("SYSCALL", 72), 6: ("OUT", 16),
    7: ("FORK", 16), 8: ("CLONE", 16), 9: ("EXEC", 16), 10: ("EXIT", 8), 11: ("END", 8), 12: ("SIGNAL", 152),
    13: ("FAULT", 152), 14: ("PREEMPT", 0), 15: ("TURN", 0), 16: ("INSN", 40), 17: ("HASH", 16), 18: ("ACQUIRE", 32),
    19: ("RELEASE", 32), 20: ("MAPPED", 64), 21: ("CHANGE", 40), 22: ("CHECKPOINT", 24), 23: ("STOP", 0),
    24: ("POKE", 16), 25: ("REGS", 176), 26: ("EXTENDED", 16)}

# ---- the two libraries ----

class Hash128(ctypes.Structure):
    _fields_ = [("lo", ctypes.c_uint64), ("hi", ctypes.c_uint64)]


_xxhash, _zstd = ctypes.CDLL("libxxhash.so.0"), ctypes.CDLL("libzstd.so.1")
_xxhash.XXH3_64bits.restype = ctypes.c_uint64
_xxhash.XXH3_64bits.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
_xxhash.XXH3_128bits.restype = Hash128
_xxhash.XXH3_128bits.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
_zstd.ZSTD_decompress.restype = _zstd.ZSTD_compress.restype = ctypes.c_size_t
_zstd.ZSTD_decompress.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t]
_zstd.ZSTD_compress.argtypes = _zstd.ZSTD_decompress.argtypes + [ctypes.c_int]


def xxh3_64(data):
    return _xxhash.XXH3_64bits(data, len(data))


def xxh3_128(data):
    h = _xxhash.XXH3_128bits(data, len(data))
    return f"{h.hi:016x}{h.lo:016x}"


def decompress(data, raw_len):
    """None: not exactly raw_len bytes."""
    room = ctypes.create_string_buffer(raw_len)
    return room.raw if _zstd.ZSTD_decompress(room, raw_len, data, len(data)) == raw_len else None


def compress(data, level=1):
    """None: it does not get smaller."""
    room = ctypes.create_string_buffer(len(data))
    n = _zstd.ZSTD_compress(room, len(data), data, len(data), level)
    return room.raw[:n] if n < len(data) else None


# ---- frames ----

class Damage(Exception):
    pass


class Frame:
    def __init__(self, data, offset):
        head = data[offset:offset + HEAD.size]
        if len(head) < HEAD.size:
            raise Damage("the file ends in the middle of a frame")
        self.offset = offset
        (magic, self.kind, self.compression, version, self.stream, self.position, self.raw_len, self.len,
         self.payload_hash, self.head_hash) = HEAD.unpack(head)
        if magic != b"RPF1":
            raise Damage("no frame where one should start")
        if xxh3_64(head[:-8]) != self.head_hash:
            raise Damage("wrong checksum of a frame's head")
        if version != VERSION:
            raise Damage("another version of the log format")
        if not self.in_range():
            raise Damage("a field of a frame's head is out of range")
        stored = data[offset + HEAD.size:offset + HEAD.size + self.len]
        if len(stored) < self.len:
            raise Damage("the file ends in the middle of a frame")
        if xxh3_64(stored) != self.payload_hash:
            raise Damage("wrong checksum of a frame's payload")
        self.raw = stored if self.compression == 0 else decompress(stored, self.raw_len)
        if self.raw is None:
            raise Damage("a payload that does not decompress")
        self.end = offset + HEAD.size + self.len

    def in_range(self):
        if self.kind not in FRAME_NAMES or not 0 < self.raw_len <= FRAME_RAW_MAX or not self.len:
            return False
        if not (self.compression == 0 and self.len == self.raw_len or self.compression == 1 and self.len < self.raw_len):
            return False
        if self.kind == EVENTS and self.raw_len % 8:
            return False
        if self.kind != EVENTS and self.stream:
            return False
        return self.position + self.raw_len < 1 << 64 if self.kind in (EVENTS, PACK_LOG, PACK_DATA) else self.position == 0

    def facts(self):
        return {"offset": self.offset, "kind": FRAME_NAMES[self.kind], "stream": self.stream, "position": self.position,
                "compression": "zstd" if self.compression else "none", "raw_len": self.raw_len, "len": self.len,
                "payload_hash": f"{self.payload_hash:016x}", "head_hash": f"{self.head_hash:016x}"}


def depth(value):
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + max(map(depth, inside), default=-1)


def read_json(raw):
    try:
        value = json.loads(raw.decode("utf-8"))
    except (ValueError, RecursionError):
        raise Damage("a payload that makes no sense")
    if not isinstance(value, dict) or depth(value) > 16:
        raise Damage("a payload that makes no sense")
    return value


def read_object(raw):
    if len(raw) < 64:
        raise Damage("a payload that makes no sense")
    lo, hi, size, dev, ino, mtime, ctime, mode, path_len = struct.unpack_from("<7QII", raw)
    path = raw[64:64 + path_len]
    if len(path) < path_len or path_len > 65536 or b"\0" in path or not lo | hi:
        raise Damage("a payload that makes no sense")
    return {"name": f"{hi:016x}{lo:016x}", "size": size, "mode": mode, "path": path.decode("utf-8", "surrogateescape")}


class Recording:
    """The frames up to the first wrong one; `fault` says what is wrong with that."""

    def __init__(self, data):
        self.data, self.frames, self.fault, self.valid = data, [], "", 0
        self.header = self.end = None
        self.streams, self.objects = {}, []
        try:
            while self.valid < len(data):
                frame = Frame(data, self.valid)
                self.take(frame)
                self.frames.append(frame)
                self.valid = frame.end
        except Damage as d:
            self.fault = str(d)

    def take(self, frame):
        if (not self.frames) != (frame.kind == HEADER) or self.end is not None or frame.kind > END:
            raise Damage("a frame that does not belong where it is")
        if frame.kind == HEADER:
            self.header = read_json(frame.raw)
        elif frame.kind == END:
            self.end = read_json(frame.raw)
        elif frame.kind == OBJECT:
            self.objects.append(read_object(frame.raw))
        else:
            frame.objects = len(self.objects)  # named so far
            have = self.streams.get(frame.stream, [])
            if frame.position != sum(f.raw_len for f in have):
                raise Damage("a frame that does not belong where it is")
            self.streams.setdefault(frame.stream, have).append(frame)

    def damaged(self):
        return self.valid < len(self.data) and (
            self.fault != "the file ends in the middle of a frame" or self.end is not None)


# ---- events ----

def events(recording, stream):
    """(number, position, kind, flags, code, size, thread, regs, ticks, payload) of each event; Damage at the first bad one."""
    number = 0
    for frame in recording.streams[stream]:
        at = 0
        while at < frame.raw_len:
            left = frame.raw_len - at
            if left < EVENT.size:
                raise Damage("no room for an event's head")
            kind, flags, code, size, thread, regs, ticks = EVENT.unpack_from(frame.raw, at)
            if size < EVENT.size or size % 8:
                raise Damage("an event whose size is none")
            if size > EVENT_MAX:
                raise Damage("an event that is too large")
            if size > left:
                raise Damage("an event that goes on behind its frame")
            if kind not in KINDS:
                raise Damage("an event of unknown kind")
            payload = frame.raw[at + EVENT.size:at + size]
            if len(payload) < KINDS[kind][1]:
                raise Damage("an event too small for its kind")
            if kind in (4, 6, 24) and struct.unpack_from("<QI", payload)[1] > len(payload) - 16:
                raise Damage("an event with more bytes than it has room for")
            if kind == 25 and struct.unpack_from("<Q", payload, 168)[0] > len(payload) - 176:
                raise Damage("an event with more bytes than it has room for")
            yield number, frame.position + at, kind, flags, code, size, thread, regs, ticks, payload
            number += 1
            at += size


def contents(name, payload, at):
    """What an event tells of a whole page, behind its other members."""
    if len(payload) <= at:
        return {}
    blocks, contents_flags = struct.unpack_from("<QQ", payload, at)
    if len(payload) != at + 16 + 64 * blocks.bit_count():
        raise Damage(f"an event {name} whose contents are of another length")
    return {"blocks": blocks, "contents_flags": contents_flags}


def payload_facts(kind, code, payload, flags):
    """The members that `reprise dump --json` prints as well; of START, MAP, MAPPED and SIGNAL some of them."""
    p, name = payload, KINDS[kind][0]
    if name == "START":
        pid, ppid, maps, memory, pc, rsp = struct.unpack_from("<4I2Q", p)
        return {"pid": pid, "ppid": ppid, "n_maps": maps, "n_memory": memory, "pc": pc, "rsp": rsp}
    if name == "FORKED":
        return dict(zip(("pid", "ppid", "parent", "parent_thread"), struct.unpack_from("<IIQI", p)))
    if name == "MAP":
        return dict(zip(("start", "end", "offset", "prot", "map_flags"), struct.unpack_from("<QQQII", p)))
    if name in ("MEMORY", "OUT", "POKE"):
        addr, length = struct.unpack_from("<QI", p)
        return {"addr": addr, "len": length, "bytes": p[16:16 + length].hex()}
    if name == "SYSCALL":
        ret, *args, outs, out_fd, out_seq = struct.unpack_from("<q6QIIQ", p)
        return {"ret": ret, "args": args, "outs": outs, **({"out_fd": out_fd, "out_seq": out_seq} if flags & 8 else {})}
    if name in ("FORK", "CLONE", "EXEC"):
        return dict(zip(("child_stream", "child_thread"), struct.unpack_from("<QI", p)))
    if name in ("EXIT", "END"):
        return {"status": struct.unpack_from("<i", p)[0]}
    if name in ("SIGNAL", "FAULT"):
        return {"info": p[:128].hex(), **dict(zip(("err", "trapno", "cr2"), struct.unpack_from("<3Q", p, 128)))}
    if name == "INSN":
        rax, rbx, rcx, rdx, insn_flags = struct.unpack_from("<5Q", p)
        return {"insn_flags": insn_flags, "rax": rax, "rbx": rbx, "rcx": rcx, "rdx": rdx,
                **(contents(name, p, 40) if code == 9 else {})}
    if name == "HASH":
        return dict(zip(("hash", "bytes"), struct.unpack_from("<QQ", p)))
    if name in ("ACQUIRE", "RELEASE"):
        page = dict(zip(("object", "page", "version", "writable"), struct.unpack_from("<QQI4xI", p)))
        return page | (contents(name, p, 32) if name == "ACQUIRE" else {})
    if name == "EXTENDED":
        return dict(zip(("xcr0", "len"), struct.unpack_from("<QI", p)))
    if name == "CHECKPOINT":
        return dict(zip(("number", "threads", "why", "n_threads"), struct.unpack_from("<QQII", p)))
    if name == "REGS":
        pc, rflags, _, _, sigmask, extended = struct.unpack_from("<6Q", p, 128)
        return {"pc": pc, "rflags": rflags, "sigmask": sigmask, "extended": extended}
    if name == "CHANGE":
        return dict(zip(("dev", "ino", "offset", "size", "len"), struct.unpack_from("<QQQQI", p)))
    if name == "MAPPED":
        return dict(zip(("dev", "ino", "file_size", "mtime_ns", "ctime_ns", "mapped_flags"), struct.unpack_from("<6Q", p, 16)))
    return {}


class Order:
    """The document's rules about the order of events in a stream."""

    def __init__(self, recording, stream):
        self.ended, self.due = False, []  # due: kinds that must follow at once
        self.objects = [o["name"] for o in recording.objects]
        self.frames = recording.streams[stream]

    def see(self, number, position, name, payload):
        if (number == 0) != (name in ("START", "FORKED")):
            raise Damage("a stream starts with START or FORKED, and has no second one")
        if self.ended:
            raise Damage("an event behind the end")
        if self.due and self.due.pop() != name:
            raise Damage(f"{name} where another event was announced")
        self.ended = name == "END"
        if name == "START":
            maps, memory = struct.unpack_from("<II", payload, 8)
            self.due = ["MEMORY"] * memory + ["MAP"] * maps
        elif name == "SYSCALL":
            self.due = ["OUT"] * struct.unpack_from("<I", payload, 56)[0]
        elif name in ("MAP", "MAPPED"):
            self.check_object(position, payload[32:48] if name == "MAP" else payload[:16])

    def check_object(self, position, name):
        frame = next(f for f in self.frames if f.position <= position < f.position + f.raw_len)
        if any(name) and name[::-1].hex() not in self.objects[:frame.objects]:
            raise Damage("an object that no frame before names")


def check_stream(recording, stream, show):
    """Events of a stream counted by kind; raises Damage where the document's rules about their order are broken."""
    counts, order = {}, Order(recording, stream)
    for number, position, kind, flags, code, size, thread, regs, ticks, payload in events(recording, stream):
        name = KINDS[kind][0]
        order.see(number, position, name, payload)
        if thread >= 1 << 20:
            raise Damage("the number of an R-thread is out of range")
        counts[name] = counts.get(name, 0) + 1
        if show:
            print(json.dumps({"stream": stream, "event": number, "position": position, "kind": name, "flags": flags,
                              "code": code, "size": size, "thread": thread, "regs": regs, "ticks": ticks,
                              **payload_facts(kind, code, payload, flags)}))
    return counts


# ---- packed recordings ----

# what may follow what, besides data
PACK_NEXT = {PACK_LOG: (PACK_OBJECT, PACK_FILE, PACK_END), PACK_OBJECT: (PACK_OBJECT, PACK_FILE, PACK_END), PACK_FILE: (PACK_FILE, PACK_END)}


def read_file(raw):
    if len(raw) < 16:
        raise Damage("a file without a name")
    size, name_len = struct.unpack_from("<QI", raw)
    if name_len != len(raw) - 16:
        raise Damage("a file's name does not fit")
    return {"size": size, "name": raw[16:].decode("ascii", "replace")}


def read_pack(data):
    """The log's bytes, the objects' and the files' by name. Everything is checked; raises Damage."""
    at, log, objects, files, current, stage, header = 0, b"", {}, {}, None, PACK_HEADER, None
    while at < len(data):
        frame = Frame(data, at)
        at = frame.end
        if frame.kind == PACK_HEADER and stage == PACK_HEADER:
            header, stage = read_json(frame.raw), PACK_LOG
        elif frame.kind == PACK_LOG and stage == PACK_LOG and frame.position == len(log):
            log += frame.raw
        elif frame.kind in PACK_NEXT.get(stage, ()):
            if current and len(current[1]) != current[0]["size"]:
                raise Damage("an object or file has not the size that it should have")
            if current and stage == PACK_OBJECT and xxh3_128(current[1]) != current[0]["name"]:
                raise Damage("an object is not what its name says")
            if current:
                (objects if stage == PACK_OBJECT else files)[current[0]["name"]] = current[1]
            current, stage = None, frame.kind
            if frame.kind == PACK_OBJECT:
                current = (read_object(frame.raw), b"")
            elif frame.kind == PACK_FILE:
                current = (read_file(frame.raw), b"")
        elif frame.kind == PACK_DATA and current and frame.position == len(current[1]):
            current = (current[0], current[1] + frame.raw)
        else:
            raise Damage("a frame that does not belong where it is")
    if stage != PACK_END:
        raise Damage("the packed file has no end")
    if header.get("log_size") != len(log):
        raise Damage("the log's size is not what the header says")
    if (header.get("files", 0), header.get("files_size", 0)) != (len(files), sum(map(len, files.values()))):
        raise Damage("the files are not what the header says")
    return log, objects, files


# ---- checkpoints ----

META = struct.Struct("<8sIIQQQQQQIIQQQQQQQQ")
PAGE = struct.Struct("<QQII")
ZERO_SLOT = (1 << 32) - 1
CHECKPOINTS_MOST = 126


class Checkpoint:
    """One metadata file. `pages`: {address: {block: (slot, check)}}."""

    def __init__(self, data, slots, stream, first, last):
        if len(data) < META.size:
            raise Damage("is no checkpoint")
        (magic, version, self.level, *numbers, self.event, self.ticks, self.time_ns, self.thread, self.why, n_dropped, n_pages,
         n_blocks, state_len, self.saved, body_hash, _, head_hash) = META.unpack_from(data)
        if magic != b"RPRPCKT1" or version != 1 or head_hash != xxh3_64(data[:128]):
            raise Damage("has a damaged head")
        if numbers != [stream, first, last]:
            raise Damage("is not what its name says")
        if len(data) != META.size + 16 * n_dropped + PAGE.size * n_pages + 8 * n_blocks + state_len:
            raise Damage("has the wrong size")
        if body_hash != xxh3_64(data[META.size:]):
            raise Damage("is damaged")
        self.first, self.last, self.blocks, at = first, last, n_blocks, META.size
        self.dropped = [struct.unpack_from("<QQ", data, at + 16 * i) for i in range(n_dropped)]
        at += 16 * n_dropped
        pages = [PAGE.unpack_from(data, at + PAGE.size * i) for i in range(n_pages)]
        at += PAGE.size * n_pages
        self.pages, before, count = {}, -1, 0
        for address, blocks, index, _ in pages:
            if address % 4096 or address >> 56 or address <= before or not blocks or index != count:
                raise Damage("has a wrong page")
            before, mine = address, {}
            for i in range(64):
                if blocks >> i & 1:
                    mine[i] = struct.unpack_from("<II", data, at + 8 * count) if count < n_blocks else (ZERO_SLOT - 1, 0)
                    if mine[i][0] != ZERO_SLOT and mine[i][0] >= slots:
                        raise Damage("names data that is not there")
                    count += 1
            self.pages[address] = mine
        end = -1
        for start, stop in self.dropped:
            if start >= stop or start <= end or (start | stop) % 4096 or stop > 1 << 56:
                raise Damage("has a wrong range")
            end = stop
        if count != n_blocks:
            raise Damage("has a wrong number of blocks")

    def drops(self, address):
        return any(a <= address < b for a, b in self.dropped)


class Checkpoints:
    """Those of one stream that count; `fault`: why there are no more."""

    def __init__(self, files, stream):
        """files: {name: bytes}"""
        self.data, self.list, self.fault = files.get(f"ckpt-{stream}.data", b""), [], None
        found = {}
        for name in files:
            numbers = name.removeprefix(f"ckpt-{stream}.").split("-")
            if name.startswith(f"ckpt-{stream}.") and len(numbers) == 2 and all(n.isdigit() and str(int(n)) == n for n in numbers):
                first, last = map(int, numbers)
                if first <= last:
                    found[first] = max(last, found.get(first, last))
        at = 0
        while at in found and not self.fault:
            name = f"ckpt-{stream}.{at}-{found[at]}"
            try:
                self.list.append(Checkpoint(files[name], len(self.data) // 64, stream, at, found[at]))
            except Damage as d:
                self.fault = f"{name} {d}"
            at = found[at] + 1
            if len(self.list) == CHECKPOINTS_MOST:
                break
        if not self.fault and any(first >= at for first in found):
            self.fault = f"checkpoints of stream {stream} from {at} on are missing"

    def memory(self, k):
        """What checkpoint k tells: {address: {block: 64 bytes}}; raises Damage."""
        out = {}
        for address in sorted({a for c in self.list[:k + 1] for a in c.pages}):
            known = {}
            for c in reversed(self.list[:k + 1]):
                for i, where in c.pages.get(address, {}).items():
                    known.setdefault(i, where)
                if c.drops(address):
                    break
            for i, (slot, check) in known.items():
                block = bytes(64) if slot == ZERO_SLOT else self.data[64 * slot:64 * slot + 64]
                if slot != ZERO_SLOT and xxh3_64(block) & 0xffffffff != check:
                    raise Damage(f"the data for address {address + 64 * i:#x} is damaged")
                out.setdefault(address, {})[i] = block
        return out

    def digest(self, k):
        """One number for all that checkpoint k tells."""
        return xxh3_64(b"".join(struct.pack("<QI", a, i) + b for a, blocks in sorted(self.memory(k).items())
                                for i, b in sorted(blocks.items())))


def read_checkpoints(files):
    """Prints what there is; False: something is damaged."""
    fine = True
    streams = sorted({int(n[5:].split(".")[0]) for n in files if n.startswith("ckpt-") and n[5:].split(".")[0].isdigit()})
    for stream in streams:
        s = Checkpoints(files, stream)
        for k, c in enumerate(s.list):
            try:
                print(f"checkpoint {stream}.{c.first}-{c.last}: level {c.level} event {c.event} ticks {c.ticks} pages {len(c.pages)} "
                      f"blocks {c.blocks} memory {s.digest(k):016x}")
            except Damage as d:
                print(f"read_log: checkpoint {stream}.{c.first}-{c.last}: {d}", file=sys.stderr)
                fine = False
        if s.fault:
            print(f"read_log: {s.fault}", file=sys.stderr)
            fine = False
    return fine


# ---- command ----

def fail(text):
    print(f"read_log: {text}", file=sys.stderr)
    sys.exit(2)


def summary(recording):
    print(f"frames {len(recording.frames)}, streams {len(recording.streams)}, objects {len(recording.objects)}, "
          f"valid {recording.valid} of {len(recording.data)} bytes")
    print("header", json.dumps(recording.header))
    print("end", json.dumps(recording.end))
    if recording.fault:
        print("fault", recording.fault)


def main():
    arguments = sys.argv[1:]
    mode = arguments.pop(0) if arguments and arguments[0] in ("--raw", "--json", "--pack", "--checkpoints") else ""
    if len(arguments) != 1 or arguments[0].startswith("-"):
        fail("usage: tools/read_log.py [--raw|--json|--pack|--checkpoints] DIR|FILE")
    if mode == "--checkpoints":
        names = [n for n in os.listdir(arguments[0]) if n.startswith("ckpt-") and not n.endswith(".new")]
        return 0 if read_checkpoints({n: open(os.path.join(arguments[0], n), "rb").read() for n in names}) else 1
    path = os.path.join(arguments[0], "log") if os.path.isdir(arguments[0]) else arguments[0]
    try:
        with open(path, "rb") as f:
            data = f.read()
    except OSError as e:
        fail(e)
    if mode == "--pack":
        try:
            data, objects, files = read_pack(data)
        except Damage as d:
            fail(d)
        for name, contents in objects.items():
            print("object", name, len(contents))
        for name, contents in files.items():
            print("file", name, len(contents))
        missing = {o["name"] for o in Recording(data).objects} - set(objects)
        if missing:
            fail(f"objects are missing: {' '.join(sorted(missing))}")
    recording = Recording(data)
    if recording.header is None:
        fail(recording.fault or "empty")
    bad = recording.damaged()
    if mode == "--raw":
        for frame in recording.frames:
            print(json.dumps(frame.facts()))
        print(json.dumps({"valid": recording.valid, "size": len(data), "fault": recording.fault}))
    elif mode != "--json":
        summary(recording)
    for stream in sorted(recording.streams) if mode != "--raw" else []:
        try:
            counts = check_stream(recording, stream, mode == "--json")
            if mode != "--json":
                print(f"stream {stream}:", *(f"{k} {v}" for k, v in sorted(counts.items())))
        except Damage as d:
            print(f"read_log: stream {stream}: {d}", file=sys.stderr)
            bad = True
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
