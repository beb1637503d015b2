"""How cost grows: with keys, log entries, leases, rules and connections; and what a key weighs."""

import itertools
import time
from functools import partial

import scripts
from cost import Best
from load import PIPELINE, Calls, drive, random_numbers, reply_lines, requests_per_second, usec_per_call
from servers import BenchServer
from variants import HOUR_MS, RULES, ZONE, bucket_words, set_policy, zone_known

SET_PX = ["SET", "KEY", "12345", "PX", HOUR_MS]
OFF = ("--appendonly", "no")


def bucket_lua(sha):
    return ["EVALSHA", sha["bucket"], "1", "KEY", 1000 / 3600, 1000000, 100]


def log_lua(sha, limit):
    return ["EVALSHA", sha["log"], "1", "KEY", limit, 24 * HOUR_MS]


def send(server, calls, numbers):
    """Pipelined calls, the last ones one by one where they fill no batch."""
    whole = len(numbers) // PIPELINE * PIPELINE
    for number in [*numbers[whole:], *numbers[:1]]:
        replies = [server.run(*words) for words in calls.words(number)]
    lines = sum(map(reply_lines, replies))
    if whole:
        drive(server.socket, calls.batches(numbers[:whole]), lines * PIPELINE)


def usec(server, calls, numbers, command=None):
    send(server, calls, numbers[:PIPELINE])
    server.run("CONFIG", "RESETSTAT")
    send(server, calls, numbers)
    return usec_per_call(server)[(command or calls.commands[0][0]).lower()]


def usec_of_any(server, calls, count, keys, seeds):
    """On other keys each time; equal seeds give all in turn the same ones."""
    return usec(server, calls, random_numbers(next(seeds), count, keys))


def in_turn(rounds, subjects):
    """{name: best of the rounds} of {name: a function that measures once}."""
    best = {name: Best(min) for name in subjects}
    for _ in range(rounds):
        for name, once in subjects.items():
            best[name].add(once())
    return {name: b.value for name, b in best.items()}


def keys(largest, rounds, count, tell):
    """µs per call by number of keys: {keys: {name: µs}}."""
    found = {}
    with BenchServer(*OFF) as server:
        sha = scripts.load(server)
        calls = {
            "SET PX": Calls([SET_PX], "set"),
            "RL.TOKENBUCKET": Calls([bucket_words("RL.TOKENBUCKET") + ["COST", "100"]], "rlb"),
            "Lua bucket": Calls([bucket_lua(sha)], "lua"),
        }
        size = before = 0
        while size < largest:
            before, size = size, max(1000, size * 10)
            tell(f"{size:,} keys")
            some = {name: c for name, c in calls.items() if size <= 1_000_000 or name != "Lua bucket"}
            for c in some.values():
                for start in range(before, size, 100_000):
                    send(server, c, list(range(start, min(size, start + 100_000))))
            once = {n: partial(usec_of_any, server, c, count, size, itertools.count()) for n, c in some.items()}
            found[size] = in_turn(rounds, once)
    return found


def fill_log(server, words, key, entries):
    """As many grants, evenly over the last 50 minutes, each at a millisecond of its own."""
    now_us = int(time.time() * 1e6)
    step_us = 3_000_000_000 // entries
    steps = []
    for i in range(entries):
        steps += [["RL.DEBUG", "CLOCK", now_us - (entries - i) * step_us], words]
    server.run_all([[key if word == "KEY" else word for word in step] for step in steps])
    server.run("RL.DEBUG", "CLOCK", "REAL")


def logs(sizes, rounds, count, tell):
    """{entries: {"granted", "refused", "Lua granted": µs, "bytes", "Lua bytes": per entry}}"""
    found = {}
    with BenchServer(*OFF) as server:
        sha = scripts.load(server)
        for size in sizes:
            tell(f"a sliding log of {size:,} entries")
            key, full, lua = (f"{kind}:{size:012d}" for kind in ("log", "full", "lua"))
            words = ["RL.SLIDING", "KEY", f"{min(65536, size + 5000)}/h"]
            exact = ["RL.SLIDING", "KEY", f"{size}/h"]
            held = size if size + 5000 <= 65536 else 60536
            fill_log(server, words, key, held)
            fill_log(server, exact, full, size)
            now = int(time.time() * 1000)
            server.run_all(["ZADD", lua, now - i, f"{now * 1000 - i}:{i}"] for i in range(size))
            row = {
                "bytes": server.run("MEMORY", "USAGE", full, "SAMPLES", 0) / size,
                "Lua bytes": server.run("MEMORY", "USAGE", lua, "SAMPLES", 0) / size,
            }
            few = [size] * (count // 10 // PIPELINE * PIPELINE)
            few = few[: 4000 // rounds // PIPELINE * PIPELINE]
            row.update(
                in_turn(
                    rounds,
                    {
                        "granted": partial(usec, server, Calls([words], "log"), few),
                        "refused": partial(usec, server, Calls([exact], "full"), few),
                        "Lua granted": partial(usec, server, Calls([log_lua(sha, 10**6)], "lua"), few),
                    },
                )
            )
            found[size] = row
    return found


def leases(sizes, rounds, count, tell):
    """{leases: {"RL.ACQUIRE", "RL.RELEASE", "Lua": µs}} of one more lease among so many."""
    found = {}
    with BenchServer(*OFF) as server:
        sha = scripts.load(server)
        for size in sizes:
            tell(f"{size:,} leases")
            key, lua = f"leases:{size:012d}", f"lua:{size:012d}"
            server.run_all(["RL.ACQUIRE", key, 1000000, "1h", "ID", f"held:{i}"] for i in range(size))
            now = int(time.time() * 1000)
            server.run_all(["ZADD", lua, now + HOUR_MS + i, f"held:{i}"] for i in range(size))
            one = [["RL.ACQUIRE", "KEY", 1000000, "1h", "ID", "job"], ["RL.RELEASE", "KEY", "job"]]
            script = [["EVALSHA", sha["leases"], "1", "KEY", 1000000, HOUR_MS, "job"], ["ZREM", "KEY", "job"]]
            pair, few = Calls(one, "leases"), [size] * (count // 5)
            found[size] = in_turn(
                rounds,
                {
                    "RL.ACQUIRE": partial(usec, server, pair, few),
                    "RL.RELEASE": partial(usec, server, pair, few, "RL.RELEASE"),
                    "Lua": partial(usec, server, Calls(script, "lua"), few),
                },
            )
    return found


def rules(rounds, count, tell):
    """{rules: {"RL.TAKE": µs}}, nothing where there is no RL.TAKE."""
    with BenchServer(*OFF) as server:
        if not server.knows("RL.TAKE"):
            return {}
        tell("policies of 1 to 8 rules")
        calls = {"RL.TOKENBUCKET": Calls([bucket_words("RL.TOKENBUCKET")], "policy0")}
        for n in range(1, len(RULES) + 1):
            set_policy(server, f"policy{n}", RULES[:n])
            calls[n] = Calls([["RL.TAKE", "KEY", f"policy{n}"]], f"policy{n}")
        for c in calls.values():
            send(server, c, list(range(10_000)))
        numbers = random_numbers(1, count, 10_000)
        best = in_turn(rounds, {name: partial(usec, server, c, numbers) for name, c in calls.items()})
    plain = best.pop("RL.TOKENBUCKET")
    return {n: {"RL.TAKE": value, "of the plain command": value / plain} for n, value in best.items()}


def connections(sizes, rounds, count, tell):
    """Requests per second without pipelining, by number of connections."""
    found = {}
    commands = {"SET PX": SET_PX, "RL.TOKENBUCKET": bucket_words("RL.TOKENBUCKET")}
    with BenchServer(*OFF, "--maxclients", max(sizes) + 100) as server:
        for size in sizes:
            tell(f"{size:,} connections")
            best = {name: Best(max) for name in commands}
            for _ in range(rounds):
                for name, words in commands.items():
                    words = [str(w).replace("KEY", f"{words[0][:3]}:__rand_int__") for w in words]
                    best[name].add(requests_per_second(server, words, max(count, size * 4), size, 10_000))
            found[size] = {name: b.value for name, b in best.items()}
    return found


def weights(count, tell):
    """Bytes per key by used_memory, tables of the server and TTL included: {name: bytes}."""
    found = {}
    with BenchServer(*OFF, "--maxmemory", "0") as server:
        sha = scripts.load(server)
        two = ["EVALSHA", sha["two counters"], "2", "KEY:now", "KEY:old", 100, HOUR_MS, 1000, 1]
        kinds = {
            "a string with a TTL": SET_PX,
            "RL.TOKENBUCKET, RL.LEAKY, CL.THROTTLE": ["RL.TOKENBUCKET", "KEY", "100/h"],
            "Lua bucket": ["EVALSHA", sha["bucket"], "1", "KEY", 100 / 3600, 100, 1],
            "RL.FIXED": ["RL.FIXED", "KEY", "100/h"],
            "Lua fixed": ["EVALSHA", sha["fixed"], "1", "KEY", 100, HOUR_MS],
            "RL.SLIDING EXACT, 1 grant": ["RL.SLIDING", "KEY", "100/h"],
            "Lua log, 1 grant": log_lua(sha, 100),
            "RL.SLIDING SLOTS 8": ["RL.SLIDING", "KEY", "100/h", "SLOTS", 8],
            "Lua two counters, first window": two,
            "RL.QUOTA": ["RL.QUOTA", "KEY", "100/year"],
            "RL.QUOTA with a zone": ["RL.QUOTA", "KEY", "100/year", "TZ", ZONE],
            "RL.ACQUIRE, 1 lease": ["RL.ACQUIRE", "KEY", 10, "1h", "ID", "job"],
            "Lua leases, 1 lease": ["EVALSHA", sha["leases"], "1", "KEY", 10, HOUR_MS, "job"],
        }
        if not zone_known(server):
            del kinds["RL.QUOTA with a zone"]
        if server.knows("RL.TAKE"):
            for n in (1, 3):
                set_policy(server, f"policy{n}", RULES[:n])
                kinds[f"RL.TAKE, {n} rule{'s' * (n > 1)}"] = ["RL.TAKE", "KEY", f"policy{n}"]
        for name, words in [("what comes first, not counted", SET_PX), *kinds.items()]:
            tell(f"bytes per key: {name}")
            server.run("FLUSHALL")
            before = server.settled_memory()
            calls = Calls([words], "user")
            for start in range(0, count, 100_000):
                send(server, calls, list(range(start, min(count, start + 100_000))))
            found[name] = (server.settled_memory() - before) / server.run("DBSIZE")
    return {name: found[name] for name in kinds}
