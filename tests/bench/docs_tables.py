"""Measures what the tables of docs/guides/choosing.md and docs/commands/rl.sliding.md say.

usage: docs_tables.py [memory | calls | slots ...], by default all

On a real server of its own; see own_server.py. Times depend on the machine, so only their ratios are told.
"""

import random
import sys

from own_server import Server

KEYS, ROUNDS, CALLS = 100_000, 20, 10_000

BUCKET_LUA = """
local now = redis.call('TIME'); now = now[1] + now[2] / 1e6
local rate, burst, cost = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local b = redis.call('HMGET', KEYS[1], 'tokens', 'at')
local tokens = math.min(burst, (tonumber(b[1]) or burst) + (now - (tonumber(b[2]) or now)) * rate)
local allowed = 0
if tokens >= cost then allowed = cost; tokens = tokens - cost end
redis.call('HSET', KEYS[1], 'tokens', tokens, 'at', now)
redis.call('PEXPIRE', KEYS[1], math.ceil((burst - tokens) / rate * 1000))
return {allowed, math.floor(tokens)}
"""

YEAR = ["KEEP", "366d"]
SMALL = [
    ("RL.TOKENBUCKET, RL.LEAKY", ["RL.TOKENBUCKET", "KEY", "100/h"], 1),
    ("RL.FIXED", ["RL.FIXED", "KEY", "100/h"], 1),
    ("RL.SLIDING EXACT, 1 grant", ["RL.SLIDING", "KEY", "1000/h"], 1),
    ("RL.SLIDING EXACT, 10 grants", ["RL.SLIDING", "KEY", "1000/h"], 10),
    ("RL.SLIDING EXACT, 100 grants", ["RL.SLIDING", "KEY", "1000/h"], 100),
    ("RL.SLIDING EXACT, 1000 grants", ["RL.SLIDING", "KEY", "1000/h"], 1000),
    ("RL.SLIDING SLOTS 8", ["RL.SLIDING", "KEY", "1000/h", "SLOTS", "8"], 10),
    ("RL.SLIDING SLOTS 64", ["RL.SLIDING", "KEY", "1000/h", "SLOTS", "64"], 10),
    ("RL.QUOTA", ["RL.QUOTA", "KEY", "100/month"], 1),
    ("any with KEEP", ["RL.TOKENBUCKET", "KEY", "100/h", *YEAR], 1),
]


def clock_calls(command, key, grants, start_us):
    """Grants spread over an hour."""
    words = [key if word == "KEY" else word for word in command]
    for i in range(grants):
        yield ["RL.DEBUG", "CLOCK", start_us + i * 3_600_000_000 // grants + i % 7 * 1000]
        yield words


def memory(server):
    """MEMORY USAGE of one key, and used_memory per key of many: the entries of the server's tables and the TTL too."""
    start_us = 1_700_000_000_000_000
    print("kind | MEMORY USAGE | per key of 100,000 with TTL")
    for name, command, grants in SMALL:
        server.run("FLUSHALL")
        server.run_all(clock_calls(command, "user:00000042", grants, start_us))
        one = server.run("MEMORY", "USAGE", "user:00000042", "SAMPLES", 0)
        server.run("RL.DEBUG", "CLOCK", "REAL")
        print(name, one, many(server, command) if grants == 1 else "", sep=" | ")
    server.run("FLUSHALL")
    members = [["ZADD", "user:00000042", 1_700_000_000_000 + i * 3600, f"{i:08}"] for i in range(1000)]
    server.run_all(members)
    print("a sorted set of 1000 |", server.run("MEMORY", "USAGE", "user:00000042", "SAMPLES", 0), "|")
    print("a string with TTL |  |", many(server, ["SET", "KEY", "1", "EX", "3600"]))
    print(
        "a hash of two fields with TTL |  |", many(server, ["HSET", "KEY", "tokens", "99.123456", "at", "1700000000"])
    )


def many(server, command):
    server.run("FLUSHALL")
    before = int(server.info("memory")["used_memory"])
    server.run_all([f"user:{i:08}" if word == "KEY" else word for word in command] for i in range(KEYS))
    if command[0] == "HSET":
        server.run_all(["EXPIRE", f"user:{i:08}", 3600] for i in range(KEYS))
    assert server.run("DBSIZE") == KEYS
    return round((int(server.info("memory")["used_memory"]) - before) / KEYS)


def calls(server):
    """INFO commandstats: mean time inside the command, all kinds in turn, in many rounds of one run."""
    sha = server.run("SCRIPT", "LOAD", BUCKET_LUA)
    granted = {
        "RL.TOKENBUCKET": ["RL.TOKENBUCKET", "KEY", "1000000/m", "BURST", "1000000000"],
        "RL.LEAKY": ["RL.LEAKY", "KEY", "1000000/m", "BURST", "1000000000"],
        "RL.FIXED": ["RL.FIXED", "KEY", "1000000000/m"],
        "RL.SLIDING EXACT": ["RL.SLIDING", "KEY", "60000/m"],
        "RL.SLIDING SLOTS 8": ["RL.SLIDING", "KEY", "1000000000/m", "SLOTS", "8"],
        "RL.SLIDING SLOTS 64": ["RL.SLIDING", "KEY", "1000000000/m", "SLOTS", "64"],
        "RL.QUOTA": ["RL.QUOTA", "KEY", "1000000000/day"],
        "RL.QUOTA TZ": ["RL.QUOTA", "KEY", "1000000000/day", "TZ", "America/Sao_Paulo"],
        "CL.THROTTLE": ["CL.THROTTLE", "KEY", "1000000000", "1000000", "60"],
        "INCR": ["INCR", "KEY"],
        "a bucket in Lua": ["EVALSHA", sha, "1", "KEY", "16000", "1000000000", "1"],
    }
    refused = {
        "RL.TOKENBUCKET, refused": ["RL.TOKENBUCKET", "KEY", "1/d"],
        "RL.FIXED, refused": ["RL.FIXED", "KEY", "1/d"],
        "RL.SLIDING EXACT, refused": ["RL.SLIDING", "KEY", "1/d"],
        "RL.QUOTA, refused": ["RL.QUOTA", "KEY", "1/year"],
    }
    usec = {name: [] for name in [*granted, *refused]}
    server.run("FLUSHALL")
    for _ in range(ROUNDS):
        for name, command in [*granted.items(), *refused.items()]:
            server.run("CONFIG", "RESETSTAT")
            prefix = name.replace(" ", "-")
            server.run_all([f"{prefix}:{i % 1000:04}" if w == "KEY" else w for w in command] for i in range(CALLS))
            stats = {field.lower(): words for field, words in server.info("commandstats").items()}
            stats = stats[f"cmdstat_{command[0].lower()}"]
            usec[name].append(float(stats.split("usec_per_call=")[1].split(",")[0]))
    print("command | µs | of RL.TOKENBUCKET")
    median = {name: sorted(times)[ROUNDS // 2] for name, times in usec.items()}
    for name, time in median.items():
        print(name, time, f"{time / median['RL.TOKENBUCKET']:.2f}", sep=" | ")


def queue(server, mode, arrivals, cost=1):
    """When each call is granted, if they queue: whoever is first waits as told and asks again."""
    server.run("FLUSHALL")
    now_ms, granted = 0, []
    for arrival_ms in arrivals:
        now_ms = max(now_ms, arrival_ms)
        while True:
            server.run("RL.DEBUG", "CLOCK", now_ms * 1000)
            allowed, _, _, wait_ms, _ = server.run("RL.SLIDING", "key", "100/h", *mode, "COST", cost)
            if allowed:
                break
            now_ms += wait_ms
        granted.append(now_ms)
    return granted


def slots(server):
    """What SLOTS costs: bytes, and grants that come later than EXACT would give them."""
    start_ms, hour_ms = 1_700_000_000_000, 3_600_000
    chance = random.Random(1)
    bursts, at_ms = [], start_ms
    for _ in range(100):
        at_ms += chance.randrange(4 * hour_ms, 8 * hour_ms)
        bursts += [at_ms + chance.randrange(60_000) for _ in range(150)]
    bursts.sort()
    modes = {"EXACT": [], **{f"SLOTS {n}": ["SLOTS", n] for n in (2, 8, 64)}}
    exact = fastest = None
    print("mode | MEMORY USAGE, 100 grants in an hour | rate without pause | later | mean of those | longest")
    for name, mode in modes.items():
        queue(server, mode, range(start_ms, start_ms + hour_ms, hour_ms // 100))
        used = server.run("MEMORY", "USAGE", "key", "SAMPLES", 0)
        pressed = queue(server, mode, [start_ms] * 1000, cost=100)
        fastest = fastest or pressed[-1] - start_ms
        rate = f"{100 * fastest / (pressed[-1] - start_ms):.1f} %"
        granted = queue(server, mode, bursts)
        exact = exact or granted
        late = [(a - b) / 1000 for a, b in zip(granted, exact) if a > b]
        share = f"{100 * len(late) / len(granted):.1f} %"
        mean = sum(late) / len(late) if late else 0
        print(name, used, rate, share, f"{mean:.0f} s", f"{max(late, default=0):.0f} s", sep=" | ")


def main():
    for name in sys.argv[1:] or ["memory", "calls", "slots"]:
        with Server() as server:
            {"memory": memory, "calls": calls, "slots": slots}[name](server)
        print()


if __name__ == "__main__":
    main()
