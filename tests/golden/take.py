#!/usr/bin/python3
"""take.py DIR NAME: makes a golden recording NAME.log of a real one. Events stay as they are; what the header tells about the
machine is made neutral. Record with an empty environment and from /tmp:

    cd /tmp && env -i REPRISE_DIR=/tmp/reprise reprise record -- /bin/echo hello"""
import json, os, sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "tools"))
sys.dont_write_bytecode = True
from read_log import Recording
from make import HEADER, frame

directory, name = sys.argv[1:]
with open(os.path.join(directory, "log"), "rb") as f:
    recording = Recording(f.read())
if recording.fault:
    sys.exit(recording.fault)
header = dict(recording.header, host="golden", kernel="Linux 6.1", store="/tmp/reprise/store")
header["cpu"] = dict(header.get("cpu", {}), model="golden")
with open(os.path.join(HERE, name + ".log"), "wb") as f:
    f.write(frame(HEADER, json.dumps(header).encode()) + recording.data[recording.frames[1].offset:])
