#!/usr/bin/python3
"""compare.py OURS THEIRS: each line of THEIRS (JSON) says what the line of OURS says; OURS may say more."""
import json, sys

ours, theirs = ([json.loads(line) for line in open(name)] for name in sys.argv[1:])
if len(ours) < len(theirs):
    sys.exit(f"{len(ours)} lines, not {len(theirs)}")
for number, (a, b) in enumerate(zip(ours, theirs), 1):
    for key, value in b.items():
        if a.get(key) != value:
            sys.exit(f"line {number}: {key} is {a.get(key)}, not {value}")
