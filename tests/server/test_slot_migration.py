"""Limiters follow their slots when the server moves them by itself: Valkey 9 and later, Redis 8.4 and later."""

import pytest
from harness import until

CALLS = {
    "{t}bucket": ("RL.TOKENBUCKET", "10/h", "COST", 3),
    "{t}sliding": ("RL.SLIDING", "10/h", "COST", 3),
    "{t}fixed": ("RL.FIXED", "10/h"),
    "{t}quota": ("RL.QUOTA", "10/day", "KEEP", "2d"),
    "{t}leases": ("RL.ACQUIRE", 10, "1h", "IDS", 3, "x", "y", "z"),
    "{t}policy": ("RL.TAKE", "free", "COST", 2),
}


def migrate(source, target, slot):
    """As each server wants it; None where it can't."""
    known = {word.lower() for word in source.run("COMMAND LIST", "FILTERBY", "PATTERN", "cluster|*")}
    if "cluster|migrateslots" in known:
        return source.run("CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", slot, slot, "NODE", target.run("CLUSTER", "MYID"))
    if "cluster|migration" in known:
        return target.run("CLUSTER", "MIGRATION", "IMPORT", slot, slot)
    return None


def contents(server):
    return {
        key: (server.run("DEBUG", "DIGEST-VALUE", key), server.run("PEXPIRETIME", key), server.run("TYPE", key))
        for key in CALLS
    }


def test_limiters_of_every_kind_move_with_their_slot(servers):
    source, target = servers("--cluster-enabled", "yes"), servers("--cluster-enabled", "yes")
    source.run("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
    source.run("CLUSTER", "MEET", "127.0.0.1", target.port)
    for server in (source, target):
        until(lambda s=server: "cluster_state:ok" in s.run("CLUSTER", "INFO"), "the cluster")
        server.run("RL.POLICY", "SET", "free", "TOKENBUCKET", "10/h", "QUOTA", "100/day", "AS", "requests")
    for key, (command, *words) in CALLS.items():
        source.run(command, key, *words)
    before = contents(source)
    if migrate(source, target, source.run("CLUSTER", "KEYSLOT", "{t}")) is None:
        pytest.skip("this server moves no slots by itself")
    until(lambda: target.run("DBSIZE") == len(CALLS) and source.run("DBSIZE") == 0, "the slot to move")
    assert contents(target) == before
