"""A limit lives where its key's slot lives, and moves with it."""

import pytest
import redis
from redis.crc import key_slot

BUCKET = "RL.TOKENBUCKET"
pytestmark = pytest.mark.topologies("cluster")


def test_keys_spread_and_clients_find_them(db):
    client = db.env.envRunner.getClusterConnection()
    for n in range(100):
        assert client.execute_command(BUCKET, f"user:{n}", "5/m", "COST", 2)[0] == 2
    for n in range(100):
        assert client.execute_command(BUCKET, f"user:{n}", "5/m") == [1, 5, 2, 0, 36000]
    assert all(node.dbsize() > 10 for node in db.nodes)


def test_another_node_says_where_the_key_is(db):
    others = [node for node in db.nodes if node is not db.node("k")]
    for command in ([BUCKET, "k", "5/m"], ["RL.STATE", "k"]):
        for node in others:
            with pytest.raises(redis.exceptions.MovedError):
                node.execute_command(*command)


@pytest.mark.parametrize("clock", ["frozen", "real"])
def test_a_limiter_moves_with_its_slot(db, clock):
    key = "user:42"
    source, target = db.node(key), next(node for node in db.nodes if node is not db.node(key))
    if clock == "real":
        db.clock.release()
    db.run(BUCKET, key, "5/h", "COST", 4, "KEEP", "1d")
    before = what(source, key)
    client = db.env.envRunner.getClusterConnection()
    move_slot(db, key, source, target)
    try:
        digest, expire_at_ms = what(target, key)
        assert digest == before[0] and 0 <= expire_at_ms - before[1] < 1000, "MIGRATE sends the time that is left"
        with pytest.raises(redis.exceptions.MovedError):
            source.execute_command(BUCKET, key, "5/h")
        assert client.execute_command(BUCKET, key, "5/h")[0] == 1, "a client with an old map is sent on"
        assert client.execute_command(BUCKET, key, "5/h")[0] == 0
    finally:
        move_slot(db, key, target, source)


def what(node, key):
    return node.execute_command("DEBUG", "DIGEST-VALUE", key), node.execute_command("PEXPIRETIME", key)


def move_slot(db, key, source, target):
    slot, port = key_slot(key.encode()), target.get_connection_kwargs()["port"]
    ids = {node: node.execute_command("CLUSTER", "MYID") for node in (source, target)}
    target.execute_command("CLUSTER", "SETSLOT", slot, "IMPORTING", ids[source])
    source.execute_command("CLUSTER", "SETSLOT", slot, "MIGRATING", ids[target])
    source.execute_command("MIGRATE", "127.0.0.1", port, key, 0, 5000)
    for node in (target, source):
        node.execute_command("CLUSTER", "SETSLOT", slot, "NODE", ids[target])


def test_traffic_in_one_slot(db):
    node = db.node("key")
    pipeline = node.pipeline(transaction=True)
    for n in range(20):
        pipeline.execute_command(BUCKET, f"{{key}}:{n}", "5/m", "COST", 1 + n % 5)
    assert [reply[0] for reply in pipeline.execute()] == [1 + n % 5 for n in range(20)]
