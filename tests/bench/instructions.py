"""Instructions per call of the main paths, counted by callgrind and compared with what was recorded.

usage: instructions.py [--record] [--explain]

A path whose own instructions, or whose calls to the server and the C library, grew by more than 5 % fails: these two
are the same in every run. All that is in the command may grow by 10 %: the random seed of a server's hash tables moves
it by a few. If it is on purpose, --record writes instructions.json anew, to be committed with the change. The numbers
are those of one compiler and one server: with others there is nothing to compare.
--explain also tells where the instructions of a granted RL.TOKENBUCKET go, and those of SET PX.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import variants
from callgrind import CountingServer
from cost import Subject
from load import PIPELINE, drive
from own_server import MODULE

RECORD = Path(__file__).with_suffix(".json")
TOLERANCE = {"own": 1.05, "calls": 1.05, "command": 1.10}
KEYS, CALLS = 500, 1000
MODULE_NAME = os.path.basename(MODULE)
DISPATCHER = ["RedisModuleCommandDispatcher", "ValkeyModuleCommandDispatcher"]
FUNCTION = {"INCR": ["incrCommand"], "SET": ["setCommand"], "EVALSHA": ["evalShaCommand"]}
PATHS = [
    "INCR, plain",
    "SET PX, plain",
    "RL.TOKENBUCKET, granted",
    "RL.TOKENBUCKET, expiry moves, granted",
    "RL.TOKENBUCKET, refused",
    "RL.FIXED, granted",
    "RL.SLIDING EXACT, granted",
    "RL.SLIDING SLOTS 8, granted",
    "RL.QUOTA with a zone, granted",
    "RL.ACQUIRE, granted",
    "RL.ACQUIRE, refused",
    "RL.TAKE, 1 rule, granted",
    "RL.TAKE, 3 rules, granted",
    "Lua bucket, granted",
    "Lua fixed, granted",
    "Lua log, granted",
    "Lua two counters, granted",
    "Lua leases, granted",
]
SET_PARTS = ["setCommand", "setGenericCommand", "setKey", "dbGenericDelete"]


def context(server):
    """What the numbers depend on, besides our code."""
    comment = subprocess.run(["readelf", "-p", ".comment", MODULE], capture_output=True, text=True).stdout
    compilers = [line.split("]", 1)[1].strip() for line in comment.splitlines() if "]" in line]
    return {"server": server.version(), "compiler": "; ".join(compilers), "machine": os.uname().machine}


def profile(server, subject):
    numbers = [i % KEYS for i in range(CALLS)]
    batches = subject.calls.batches(numbers)
    lines = subject.lines * PIPELINE
    drive(server.socket, batches[: KEYS // PIPELINE], lines)
    found = server.counted(lambda: drive(server.socket, batches, lines))
    subject.sample(numbers[-1])
    return found


def counts(subject, found):
    """Per step: in the command, in our own code, in all. A step of RL.ACQUIRE has its RL.RELEASE too."""
    functions = FUNCTION.get(subject.variant.commands[0][0], DISPATCHER)
    command = sum(found.inclusive(f) for f in functions)
    row = {"command": command, "own": found.own(MODULE_NAME), "total": found.total}
    counted = {name: round(value / CALLS) for name, value in row.items()}
    return {**counted, "calls": round(found.calls_out_of(MODULE_NAME) / CALLS, 1)}


def explain(found, kind):
    """[(part, instructions per call)], the largest first."""
    if kind == "module":
        parts = found.out_of(MODULE_NAME)
        parts["our own code"] = found.own(MODULE_NAME)
    else:
        parts = found.below(SET_PARTS)
        parts["setCommand and setKey themselves"] = sum(c for (_, f), c in found.self_of.items() if f in SET_PARTS)
    return [[name, round(cost / CALLS)] for name, cost in parts.most_common() if cost >= 10 * CALLS]


def measure():
    with CountingServer() as server:
        rows, parts = {}, {}
        everything = {v.id: v for v in variants.all_variants(server, None)}
        for path in PATHS:
            if path not in everything:
                print(f"instructions: {path} is left out: this server or machine has no such command or zone")
                continue
            server.run("FLUSHALL")  # so that each path finds tables of the same size
            subject = Subject(everything[path], server, KEYS)
            subject.prepare(list(range(KEYS)))
            found = profile(server, subject)
            rows[path] = counts(subject, found)
            if path in ("SET PX, plain", "RL.TOKENBUCKET, granted", "RL.TOKENBUCKET, refused"):
                parts[path] = explain(found, "server" if path.startswith("SET") else "module")
        return {"context": context(server), "paths": rows, "parts": parts}


COLUMNS = "{:>8} {:>6} {:>6} {:>8}"


def show(row):
    return COLUMNS.format(row["command"], row["own"], row["calls"], row["total"])


def compare(now, before):
    """The names of the paths that grew."""
    grown = []
    print(f"{'instructions per call':40} {COLUMNS.format('command', 'own', 'calls', 'total')}   recorded")
    for path, row in now["paths"].items():
        was = before["paths"].get(path)
        note = show(was) if was else "not recorded"
        if was and any(row[part] > was[part] * most for part, most in TOLERANCE.items()):
            grown.append(path)
            note += "  GREW"
        print(f"{path:40} {show(row)}   {note}")
    return grown


def main():
    now = measure()
    if "--explain" in sys.argv:
        for path, parts in now["parts"].items():
            print(path)
            for name, cost in parts:
                print(f"    {cost:7}  {name}")
    if "--record" in sys.argv:
        RECORD.write_text(json.dumps(now, indent=1) + "\n")
        compare(now, now)
        print(f"recorded in {RECORD.name}")
        return
    before = json.loads(RECORD.read_text()) if RECORD.exists() else {"context": {}, "paths": {}}
    if now["context"] != before["context"]:
        compare(now, {"paths": {}})
        print(f"SKIPPED: nothing to compare with. Recorded with {before['context']}, this is {now['context']}.")
        return
    grown = compare(now, before)
    if grown:
        print(f"Above what was recorded: {'; '.join(grown)}.")
        raise SystemExit("If that is on purpose: make instructions ARGS=--record, and commit the new numbers.")
    print(f"instructions: none of {len(now['paths'])} paths grew")


if __name__ == "__main__":
    main()
