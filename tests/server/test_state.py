"""RL.STATE: all that is known of a limiter, for whoever may read."""

import pytest
import redis
from harness import pairs

BUCKET = "RL.TOKENBUCKET"


def test_a_bucket_tells_everything(db):
    db.run(BUCKET, "k", "10/s", "BURST", 100, "COST", 40)
    db.clock.advance(ms=50)
    assert db.state("k") == {
        "kind": "tokenbucket",
        "rule": "10/s BURST 100",
        "limit": 100,
        "remaining": 60,
        "used": 40,
        "wait_ms": 0,
        "reset_ms": 3950,
    }


def test_cost_is_what_the_wait_is_for(db):
    db.run(BUCKET, "k", "10/s", "COST", 8)
    assert [db.state("k", "COST", cost)["wait_ms"] for cost in (1, 2, 3, 10, 11)] == [0, 0, 100, 800, -1]


def test_debt_is_more_used_than_there_is(db):
    db.run(BUCKET, "k", "10/s", "COST", 25, "FORCE")
    state = db.state("k")
    assert (state["remaining"], state["used"], state["wait_ms"], state["reset_ms"]) == (-15, 25, 1600, 2500)


@pytest.mark.parametrize(
    "rate, rule", [("60/60s", "60/m"), ("5/7d", "5/w"), ("1/1500ms", "1/1500ms"), ("9/90m", "9/90m")]
)
def test_the_rule_is_in_the_shortest_notation(db, rate, rule):
    db.run(BUCKET, "k", rate)
    assert db.state("k")["rule"] == rule


def test_the_rule_can_be_sent_back(db):
    db.run(BUCKET, "k", "36000/30m", "BURST", 7)
    before = db.state("k")
    assert db.run(BUCKET, "k", *before["rule"].split(), "PEEK")[1:3] == [before["limit"], before["remaining"]]


def test_what_was_never_used_or_has_outlived_itself_is_null(db):
    assert db.state("k") is None
    db.run(BUCKET, "k", "10/s")
    db.clock.advance(ms=100)
    assert db.state("k") is None


def test_a_map_in_resp3_and_flat_pairs_in_resp2(server):
    server.run(BUCKET, "k", "10/s", "KEEP", "1h")
    old, new = (server.connect(protocol=n, decode_responses=True) for n in (2, 3))
    fields = ["kind", "rule", "limit", "remaining", "used", "wait_ms", "reset_ms", "granted", "last_ms"]
    assert old.execute_command("RL.STATE", "k")[::2] == fields
    assert new.execute_command("RL.STATE", "k") == server.state("k")
    assert [client.execute_command("RL.STATE", "missing") for client in (old, new)] == [None, None]


def test_another_type_is_an_error(db):
    db.run("SET", "k", "x")
    with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
        db.state("k")


def test_it_changes_nothing(db):
    db.run(BUCKET, "k", "10/s", "COST", 5)
    db.clock.back(ms=60_000)  # even a state ahead of the clock stays as it is
    node = db.node("k")
    before = node.execute_command("DEBUG", "DIGEST"), node.info("persistence")["rdb_changes_since_last_save"]
    db.state("k")
    assert (node.execute_command("DEBUG", "DIGEST"), node.info("persistence")["rdb_changes_since_last_save"]) == before


def test_it_works_in_scripts_that_only_read(db):
    db.run(BUCKET, "k", "10/s", "COST", 4)
    script = "return redis.call('RL.STATE', KEYS[1])[8]"
    assert db.node("k").execute_command("EVAL_RO", script, 1, "k") == 6


def test_a_user_who_may_only_read_may_ask(server):
    server.run("ACL", "SETUSER", "reader", "on", "nopass", "%R~*", "+rl.state", "+rl.tokenbucket")
    server.run(BUCKET, "k", "10/s", "COST", 4)
    reader = server.connect(username="reader", password="", decode_responses=True)
    assert "tokenbucket" in reader.execute_command("RL.STATE", "k")
    with pytest.raises(redis.exceptions.NoPermissionError):
        reader.execute_command(BUCKET, "k", "10/s")
    server.run("ACL", "DELUSER", "reader")


@pytest.mark.topologies("replica")
def test_it_answers_on_a_replica_that_decides_nothing(db):
    db.clock.release()  # as the replica's is
    db.run(BUCKET, "k", "10/d", "COST", 4, "KEEP", "1h")
    assert db.node("k").wait(1, 10_000) == 1
    here, there = db.state("k"), pairs(db.replica.execute_command("RL.STATE", "k"))
    assert abs(here.pop("reset_ms") - there.pop("reset_ms")) < 5000
    assert here == there
    with pytest.raises(redis.ReadOnlyError):
        db.replica.execute_command(BUCKET, "k", "10/d", "PEEK")
