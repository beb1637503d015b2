"""Limiters follow their slots when the server moves them by itself: Valkey 9 and later, Redis 8.4 and later."""

import pytest
from harness import free_port, until

CALLS = {
    "{t}bucket": ("RL.TOKENBUCKET", "10/h", "COST", 3),
    "{t}sliding": ("RL.SLIDING", "10/h", "COST", 3),
    "{t}fixed": ("RL.FIXED", "10/h"),
    "{t}quota": ("RL.QUOTA", "10/day", "KEEP", "2d"),
    "{t}leases": ("RL.ACQUIRE", 10, "1h", "IDS", 3, "x", "y", "z"),
    "{t}policy": ("RL.TAKE", "free", "COST", 2),
}


def way_of(server):
    """The server's own word for it; None where it has none."""
    known = {word.lower() for word in server.run("COMMAND LIST", "FILTERBY", "PATTERN", "cluster|*")}
    return next((way for way in ("migrateslots", "migration") if f"cluster|{way}" in known), None)


def migrate(source, target, slot):
    if way_of(source) == "migrateslots":
        source.run("CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", slot, slot, "NODE", target.run("CLUSTER", "MYID"))
    else:
        target.run("CLUSTER", "MIGRATION", "IMPORT", slot, slot)


def contents(server):
    return {
        key: (server.run("DEBUG", "DIGEST-VALUE", key), server.run("PEXPIRETIME", key), server.run("TYPE", key))
        for key in CALLS
    }


def test_limiters_of_every_kind_move_with_their_slot(server, servers):
    if way_of(server) is None:
        pytest.skip("this server moves no slots by itself")
    bus = [free_port(), free_port()]
    source, target = (servers("--cluster-enabled", "yes", "--cluster-port", str(port)) for port in bus)
    source.run("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
    source.run("CLUSTER", "MEET", "127.0.0.1", target.port, bus[1])
    for node in (source, target):
        until(lambda n=node: "cluster_state:ok" in n.run("CLUSTER", "INFO"), "the cluster")
        node.run("RL.POLICY", "SET", "free", "TOKENBUCKET", "10/h", "QUOTA", "100/day", "AS", "requests")
    for key, (command, *words) in CALLS.items():
        source.run(command, key, *words)
    before = contents(source)
    migrate(source, target, source.run("CLUSTER", "KEYSLOT", "{t}"))
    until(lambda: target.run("DBSIZE") == len(CALLS) and source.run("DBSIZE") == 0, "the slot to move")
    assert contents(target) == before
