"""The same calls with an append-only file, and with a replica."""

import time

from cost import Best
from growth import OFF, SET_PX
from load import PIPELINE, Calls, drive, random_numbers, reply_lines, usec_per_call
from servers import BenchServer
from variants import bucket_words

KEYS = 10_000
AOF = ("--appendonly", "yes", "--auto-aof-rewrite-percentage", "0", "--appendfsync")


def measure(rounds, count, tell):
    """{setup: {name: {"usec", "rps"}}}, all servers up at once and asked in turn."""
    with BenchServer(*OFF) as off, BenchServer(*AOF, "everysec") as everysec, BenchServer(*AOF, "always") as always:
        with BenchServer(*OFF) as primary, BenchServer(*OFF, "--replicaof", "127.0.0.1", primary.port) as replica:
            while replica.info("replication")["master_link_status"] != "up":
                time.sleep(0.05)
            setups = {"AOF off": off, "AOF everysec": everysec, "AOF always": always, "with a replica": primary}
            return run(setups, rounds, count, tell)


def run(setups, rounds, count, tell):
    calls = {
        "SET PX": Calls([SET_PX], "set"),
        "RL.TOKENBUCKET": Calls([bucket_words("RL.TOKENBUCKET")], "rlb"),
    }
    best = {(s, c): {"usec": Best(min), "rps": Best(max)} for s in setups for c in calls}
    for number in range(rounds):
        tell(f"round {number + 1} of {rounds}, persistence and replica")
        batches = {name: c.batches(random_numbers(number, count, KEYS)) for name, c in calls.items()}
        for setup, server in setups.items():
            for name, c in calls.items():
                lines = sum(reply_lines(server.run(*words)) for words in c.words(0))
                server.run("CONFIG", "RESETSTAT")
                seconds = drive(server.socket, batches[name], lines * PIPELINE)
                best[setup, name]["usec"].add(usec_per_call(server)[c.commands[0][0].lower()])
                best[setup, name]["rps"].add(count / seconds)
    return {s: {c: {k: b.value for k, b in best[s, c].items()} for c in calls} for s in setups}
