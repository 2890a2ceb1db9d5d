#!/usr/bin/python3
"""compare.py REPRISE LOG...: the second reader (tools/read_log.py) sees the same frames and events as `reprise dump`."""
import contextlib, io, json, os, subprocess, sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools"))
sys.dont_write_bytecode = True
import read_log


def ours(reprise, *arguments):
    done = subprocess.run([reprise, "dump", "--json", *arguments], capture_output=True)
    return [json.loads(line) for line in done.stdout.splitlines()], done.returncode != 0


def theirs(*arguments):
    out, sys.argv[1:] = io.StringIO(), arguments
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
            bad = read_log.main() != 0
    except SystemExit:
        bad = True
    return [json.loads(line) for line in out.getvalue().splitlines()], bad


def differences(a, b):
    """`a` may say more, in a line and in lines: the second reader stops where the order of events is wrong."""
    if len(a) < len(b):
        yield f"{len(a)} lines, not {len(b)}"
    for number, (x, y) in enumerate(zip(a, b), 1):
        for key, value in y.items():
            if x.get(key) != value:
                yield f"line {number}: {key} is {x.get(key)}, not {value}"


def main():
    reprise, *logs = sys.argv[1:]
    failed = False
    for log in logs:
        (frames, bad), (frames2, bad2) = ours(reprise, "--raw", log), theirs("--raw", log)
        wrong = list(differences(frames, frames2)) + (["only one finds it damaged"] if bad != bad2 else [])
        events, disorder = theirs("--json", log)
        wrong += differences(ours(reprise, log)[0], events)
        if disorder and os.path.basename(log).startswith(("good", "real")):
            wrong += ["the second reader does not like a good one"]
        for text in wrong[:3]:
            print(f"{log}: the readers differ: {text}")
            failed = True
    return failed


if __name__ == "__main__":
    sys.exit(main())
