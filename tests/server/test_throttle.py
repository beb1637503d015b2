"""CL.THROTTLE: what redis-cell answers, on the bucket of RL.TOKENBUCKET."""

import os
import subprocess
from pathlib import Path

import pytest
import redis
from harness import MODULE, START_US
from hypothesis import given, settings
from hypothesis import strategies as st
from models_windows import Cell
from windows import check_refused, label

COMMAND = "CL.THROTTLE"
INCLUDE = Path(__file__).parents[2] / "build" / "include"
START_NS = START_US * 1000


def throttle(db, key, *words):
    return db.run(COMMAND, key, *words)


# ---- by example

REFERENCE = [  # burst 4, 1/s, so a limit of 5: seconds, quantity, reply
    (0, 6, [1, 5, 5, -1, 0]),
    (0, 1, [0, 5, 4, -1, 1]),
    (0, 1, [0, 5, 3, -1, 2]),
    (0, 1, [0, 5, 2, -1, 3]),
    (0, 1, [0, 5, 1, -1, 4]),
    (0, 1, [0, 5, 0, -1, 5]),
    (0, 1, [1, 5, 0, 1, 5]),
    (3.0, 1, [0, 5, 2, -1, 3]),
    (3.1, 1, [0, 5, 1, -1, 4]),
    (4.0, 1, [0, 5, 1, -1, 4]),
    (8.0, 1, [0, 5, 4, -1, 1]),
    (9.5, 1, [0, 5, 4, -1, 1]),
    (9.5, 0, [0, 5, 4, -1, 1]),
    (9.5, 2, [0, 5, 2, -1, 3]),
    (9.5, 5, [1, 5, 2, 3, 3]),
]


def test_the_reference_table_of_redis_cell(db):
    for at_s, quantity, reply in REFERENCE:
        db.clock.freeze(START_US + round(at_s * 1_000_000))
        assert throttle(db, "k", 4, 1, 1, quantity) == reply, (at_s, quantity)


def test_the_example_of_its_readme(db):
    assert throttle(db, "user123", 15, 30, 60) == [0, 16, 15, -1, 2]


def test_a_limit_of_one(db):
    assert throttle(db, "k", 0, 1, 2, 1) == [0, 1, 0, -1, 2]
    assert throttle(db, "k", 0, 1, 2, 1) == [1, 1, 0, 2, 2]


def test_a_wait_is_never_zero_while_limited(db):
    throttle(db, "k", 0, 1, 1)
    db.clock.advance(us=999_999)
    assert throttle(db, "k", 0, 1, 1) == [1, 1, 0, 1, 1]
    db.clock.advance(us=1)
    assert throttle(db, "k", 0, 1, 1) == [0, 1, 0, -1, 1]


def test_a_quantity_of_zero_takes_nothing_and_makes_no_key(db):
    assert throttle(db, "k", 4, 1, 1, 0) == [0, 5, 5, -1, 0]
    assert db.run("EXISTS", "k") == 0


def test_it_shares_the_key_with_the_bucket(db):
    throttle(db, "k", 4, 1, 1, 3)
    assert db.run("RL.TOKENBUCKET", "k", "1/s", "BURST", 5) == [1, 5, 1, 0, 4000]
    assert throttle(db, "k", 4, 1, 1) == [0, 5, 0, -1, 5]
    assert db.state("k")["rule"] == "1/s BURST 5"
    assert db.run("TYPE", "k") == "rl-bucket"


def test_keys_are_bytes(db):
    for key in (b"", b"\xff\xfe\x00", b"\n"):
        assert throttle(db, key, 4, 1, 1) == [0, 5, 4, -1, 1]


def test_a_refused_call_writes_nothing(server):
    throttle(server, "k", 0, 1, 60)
    before = server.contents(), server.info("rdb_changes_since_last_save")
    assert throttle(server, "k", 0, 1, 60)[0] == 1
    assert throttle(server, "k", 0, 1, 60, 0)[0] == 0
    assert throttle(server, "k", 0, 1, 60, 2) == [1, 1, 0, -1, 60]
    assert (server.contents(), server.info("rdb_changes_since_last_save")) == before


# ---- against a model of redis-cell


RATES = [(1, 1), (30, 60), (10, 1), (1, 2), (1, 3600), (8, 1), (1000, 1), (3, 60), (7, 7), (1_000_000, 1), (64, 86_400)]
STEPS_US = st.one_of(
    st.just(0),
    st.integers(0, 3_000_000),
    st.sampled_from([1, 999_999, 1_000_000, 1_000_001, 500_000]),
    st.integers(0, 10**11),
)


@settings(max_examples=150)
@given(
    rate=st.sampled_from(RATES),
    max_burst=st.integers(0, 30),
    calls=st.lists(st.tuples(STEPS_US, st.sampled_from([1, 1, 1, 0, 2, 5, 40])), min_size=1, max_size=40),
)
def test_every_field_of_every_reply_is_redis_cells(server, rate, max_burst, calls):
    cell, now_us, expected = Cell(), START_US, []
    pipeline = server.client.pipeline(transaction=False)
    pipeline.execute_command("DEL", "k")
    for step_us, quantity in calls:
        now_us += step_us
        pipeline.execute_command("RL.DEBUG", "CLOCK", now_us)
        pipeline.execute_command(COMMAND, "k", max_burst, *rate, quantity)
        expected.append(cell.call(max_burst, *rate, quantity, now_us * 1000))
    assert pipeline.execute()[2::2] == expected


# ---- with or without the command


def test_it_can_be_left_out(servers):
    server = servers("--ratelimit.cl-throttle", "no")
    with pytest.raises(redis.ResponseError, match="unknown command"):
        throttle(server, "k", 4, 1, 1)
    assert server.run("RL.TOKENBUCKET", "k", "1/s")[0] == 1
    assert server.run("CONFIG", "GET", "ratelimit.cl-throttle") == ["ratelimit.cl-throttle", "no"]


OTHER_MODULE = """
#include <redismodule.h>
static int run(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    (void)argv;
    (void)argc;
    return RedisModule_ReplyWithSimpleString(ctx, "mine");
}
int RedisModule_OnLoad(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    (void)argv;
    (void)argc;
    if (RedisModule_Init(ctx, "cell", 1, REDISMODULE_APIVER_1) != REDISMODULE_OK) return REDISMODULE_ERR;
    return RedisModule_CreateCommand(ctx, "cl.throttle", run, "write", 1, 1, 1);
}
"""


@pytest.fixture(scope="module")
def other_module(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cell")
    (folder / "cell.c").write_text(OTHER_MODULE)
    compiler = os.environ.get("CC", "cc").split()
    flags = ["-shared", "-fPIC", "-w", "-isystem", str(INCLUDE), "-o", str(folder / "cell.so"), str(folder / "cell.c")]
    subprocess.run([*compiler, *flags], check=True)
    return str(folder / "cell.so")


def test_where_another_module_has_the_name_it_keeps_it(servers, other_module):
    server = servers("--loadmodule", other_module)
    assert throttle(server, "k", 4, 1, 1) == "mine"
    assert server.run("RL.TOKENBUCKET", "k", "1/s")[0] == 1
    assert any("cl.throttle" in line.lower() and "taken" in line for line in server.log().splitlines())


def test_it_comes_back_when_the_other_module_is_gone(servers, other_module):
    server = servers(load=(other_module,))
    server.run("MODULE", "LOAD", MODULE)
    assert throttle(server, "k", 4, 1, 1) == "mine"
    server.run("MODULE", "UNLOAD", "cell")
    with pytest.raises(redis.ResponseError, match="unknown command"):
        throttle(server, "k", 4, 1, 1)


# ---- what redis-cell left behind


@pytest.fixture
def importing(db):
    for node in db.nodes:
        node.config_set("ratelimit.cell-import", "yes")
    yield db
    for node in db.nodes:
        node.config_set("ratelimit.cell-import", "no")


def test_strings_are_not_understood_unless_told_to(db):
    assert db.nodes[0].config_get("ratelimit.cell-import") == {"ratelimit.cell-import": "no"}
    db.run("SET", "k", START_NS + 4 * 10**9)
    with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
        throttle(db, "k", 4, 1, 1)


def test_the_first_granted_use_converts(importing):
    db = importing
    db.run("SET", "k", START_NS + 2_500_000_000, "EX", 100)
    assert throttle(db, "k", 4, 1, 1) == [0, 5, 1, -1, 4]
    assert db.run("TYPE", "k") == "rl-bucket"
    assert throttle(db, "k", 4, 1, 1) == [0, 5, 0, -1, 5]
    assert throttle(db, "k", 4, 1, 1) == [1, 5, 0, 1, 5]


def test_a_converted_key_expires_when_it_is_unused(importing):
    db = importing
    db.clock.release()
    seconds, micros = db.node("k").time()
    db.run("SET", "k", (seconds * 10**6 + micros) * 1000 + 20 * 10**9, "EX", 100_000)
    assert throttle(db, "k", 9, 1, 10)[0] == 0
    assert 0 < db.run("PTTL", "k") < 60_000


def test_a_refused_use_changes_nothing(importing):
    db = importing
    db.run("SET", "k", START_NS + 5 * 10**9 - 1, "EX", 100_000)
    node = db.node("k")
    before = node.execute_command("DEBUG", "DIGEST"), node.info("persistence")["rdb_changes_since_last_save"]
    assert throttle(db, "k", 4, 1, 1) == [1, 5, 0, 1, 5]
    assert throttle(db, "k", 4, 1, 1, 0) == [0, 5, 0, -1, 5]
    assert throttle(db, "k", 4, 1, 1, 6) == [1, 5, 0, -1, 5]
    assert (node.execute_command("DEBUG", "DIGEST"), node.info("persistence")["rdb_changes_since_last_save"]) == before
    assert db.run("GET", "k") == str(START_NS + 5 * 10**9 - 1)


def test_what_is_over_counts_as_unused(importing):
    db = importing
    db.run("SET", "k", START_NS - 10**9)
    assert throttle(db, "k", 4, 1, 1) == [0, 5, 4, -1, 1]


def test_a_whole_number_of_microseconds_is_that(importing):
    db = importing
    db.run("SET", "k", START_NS + 4 * 10**9)
    assert throttle(db, "k", 4, 1, 1, 0) == [0, 5, 1, -1, 4]
    assert throttle(db, "k", 4, 1, 1, 1) == [0, 5, 0, -1, 5]


@settings(max_examples=60)
@given(
    rate=st.sampled_from(RATES),
    max_burst=st.integers(0, 30),
    owed=st.fractions(min_value=0, max_value=1),
    calls=st.lists(st.tuples(STEPS_US, st.sampled_from([1, 1, 0, 2, 5])), min_size=1, max_size=10),
)
def test_it_goes_on_where_redis_cell_was(server, rate, max_burst, owed, calls):
    """Cell's time is in ns and the bucket's in µs: the rest is rounded against the caller, by less than 1 µs."""
    server.run("CONFIG", "SET", "ratelimit.cell-import", "yes")
    tolerance_ns = rate[1] * 10**9 // rate[0] * (max_burst + 1)
    cell = Cell(START_NS + int(owed * tolerance_ns) // 1000 * 1000)
    server.run("SET", "k", cell.full_at_ns)
    now_us = START_US
    for step_us, quantity in calls:
        now_us += step_us
        server.clock.freeze(now_us)
        expected = cell.call(max_burst, *rate, quantity, now_us * 1000)
        assert throttle(server, "k", max_burst, *rate, quantity) == expected
    server.run("CONFIG", "SET", "ratelimit.cell-import", "no")


@pytest.mark.parametrize("value", ["x", "", "1.5", "-1", " 1", "1 ", "1e3", "9223372036854775808", "9" * 40])
def test_any_other_string_is_an_error(importing, value):
    db = importing
    db.run("SET", "k", value)
    with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
        throttle(db, "k", 4, 1, 1)
    assert db.run("GET", "k") == value


def test_a_time_far_ahead_is_no_limit_that_was_ever_set(importing):
    db = importing
    db.run("SET", "k", 9223372036854775807)
    with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
        throttle(db, "k", 4, 1, 1)


def test_other_commands_understand_no_strings(importing):
    db = importing
    db.run("SET", "k", START_NS)
    for command in ("RL.TOKENBUCKET", "RL.LEAKY", "RL.FIXED"):
        with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
            db.run(command, "k", "1/s")


def test_other_types_stay_errors(importing):
    db = importing
    db.run("RPUSH", "k", "1")
    with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
        throttle(db, "k", 4, 1, 1)


# ---- errors


def table():
    good = ["4", "1", "1"]
    for at, name in enumerate(["max_burst", "count", "period"]):
        for bad in ("-1", "x", "", "1.5", " 1", "9223372036854775808", "1000000000001"):
            yield [COMMAND, "k", *good[:at], bad, *good[at + 1 :]], "ERR", name
    yield [COMMAND, "k", "4", "0", "1"], "ERR", "count"
    yield [COMMAND, "k", "4", "1", "0"], "ERR", "period"
    yield [COMMAND, "k", "4", "1", "31622401"], "ERR", "period"
    for bad in ("-1", "x", "", "1.5", "1000000000001"):
        yield [COMMAND, "k", *good, bad], "ERR", "quantity"
    yield [COMMAND, "k", "1000000", "1", "31622400"], "ERR", ("max_burst", "ten years")
    for words in ([], ["k"], ["k", "4"], ["k", "4", "1"], ["k", "4", "1", "1", "1", "1"]):
        yield [COMMAND, *words], "ERR", "wrong number of arguments"
    for key in ("string", "number", "list", "window"):
        yield [COMMAND, key, *good], "WRONGTYPE", "wrong kind of value"
        yield [COMMAND, key, *good, "0"], "WRONGTYPE", "wrong kind of value"
    yield [COMMAND, "string", "x", "1", "1"], "ERR", "max_burst"  # arguments come before keys


@pytest.mark.parametrize("call, prefix, needles", table(), ids=map(label, table()))
def test_an_error_names_the_argument_and_changes_nothing(server, call, prefix, needles):
    throttle(server, "bucket", 4, 1, 60)
    server.run("RL.FIXED", "window", "10/h")
    server.run("SET", "string", "x")
    server.run("SET", "number", START_NS)
    server.run("RPUSH", "list", "x")
    check_refused(server, call, prefix, needles)
