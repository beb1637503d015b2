"""RL.LEAKY: the bucket of RL.TOKENBUCKET, asked how long to hold what it grants."""

import pytest
import redis
from harness import START_US
from hypothesis import given, settings
from hypothesis import strategies as st
from model import TEN_YEARS_US, UNIT_MS, Limit
from models_windows import Leaky
from windows import (
    WRONG_RATES,
    calls,
    check_dumps_and_copies,
    check_refused,
    check_rewritten_log,
    check_traffic,
    concrete,
    label,
    mix,
    wrong_everywhere,
)

COMMAND = "RL.LEAKY"
BUCKET = "RL.TOKENBUCKET"


def take(db, key, rate, *options):
    return db.run(COMMAND, key, rate, *options)


# ---- by example


def test_a_first_session(db):
    assert [take(db, "outbox", "1/s", "BURST", 3) for _ in range(4)] == [
        [1, 3, 2, 0, 1000],
        [1, 3, 1, 1000, 2000],
        [1, 3, 0, 2000, 3000],
        [0, 3, 0, 1000, 3000],
    ]


def test_a_grant_is_held_until_what_came_before_has_left(db):
    assert take(db, "k", "10/s", "COST", 4) == [4, 10, 6, 0, 400]
    assert take(db, "k", "10/s") == [1, 10, 5, 400, 500]
    db.clock.advance(ms=450)
    assert take(db, "k", "10/s", "COST", 2) == [2, 10, 7, 50, 250]
    db.clock.advance(ms=250)
    assert take(db, "k", "10/s") == [1, 10, 9, 0, 100]


def test_a_hold_is_rounded_up(db):
    take(db, "k", "3/s")
    assert take(db, "k", "3/s")[3] == 334


def test_a_peek_tells_the_hold_too(db):
    take(db, "k", "1/s", "BURST", 5, "COST", 2)
    assert take(db, "k", "1/s", "BURST", 5, "PEEK") == [1, 5, 3, 2000, 2000]


def test_upto_and_force_are_held(db):
    take(db, "k", "1/s", "BURST", 5, "COST", 3)
    assert take(db, "k", "1/s", "BURST", 5, "COST", 9, "UPTO") == [2, 5, 0, 3000, 5000]
    assert take(db, "k", "1/s", "BURST", 5, "COST", 2, "FORCE") == [2, 5, -2, 5000, 7000]


def test_a_refund_is_not_held(db):
    take(db, "k", "1/s", "BURST", 5, "COST", 3)
    assert take(db, "k", "1/s", "BURST", 5, "REFUND", 1) == [1, 5, 3, 0, 2000]


def test_what_leaves_is_evenly_spaced(db):
    """Bursts of callers, each of whom waits as told."""
    leaves_ms, now_ms = [], 0
    for gap_ms in [0, 0, 0, 130, 0, 40, 0, 0, 1000, 250, 0, 0, 0, 0, 3000, 0]:
        db.clock.advance(ms=gap_ms)
        now_ms += gap_ms
        allowed, _, _, wait_ms, _ = take(db, "k", "4/s", "BURST", 8)
        if allowed:
            leaves_ms.append(now_ms + wait_ms)
    gaps = [later - sooner for sooner, later in zip(leaves_ms, leaves_ms[1:])]
    assert len(leaves_ms) > 10
    assert min(gaps) == 250, "never closer than the rate says"
    assert gaps[:6] == [250] * 6, "and no wider while callers queue up"


# ---- one bucket, two commands


def test_both_commands_share_the_key(db):
    assert take(db, "k", "1/s", "BURST", 5, "COST", 2) == [2, 5, 3, 0, 2000]
    assert db.run(BUCKET, "k", "1/s", "BURST", 5) == [1, 5, 2, 0, 3000]
    assert take(db, "k", "1/s", "BURST", 5) == [1, 5, 1, 3000, 4000]
    assert db.run(BUCKET, "k", "1/s", "BURST", 5, "COST", 2) == [0, 5, 1, 1000, 4000]
    assert db.run("TYPE", "k") == "rl-bucket"
    assert db.state("k")["used"] == 4


def limits():
    periods = [n * ms for ms in UNIT_MS.values() for n in (1, 7)] + [250, 999, 366 * 86_400_000]
    counts = st.one_of(st.integers(1, 20), st.integers(1, 10**12))
    return st.builds(with_burst, counts, st.sampled_from(periods), st.one_of(st.none(), st.integers(1, 50), counts))


def with_burst(units, period_ms, burst):
    burst = min(burst or units, TEN_YEARS_US * units // (period_ms * 1000))
    return Limit(units, period_ms * 1000, burst), [f"{units}/{period_ms}ms", "BURST", burst]


CALLS = calls(st.one_of(st.integers(-(10**6), 10**7), st.integers(-(10**12), 10**13)))
RULES = st.lists(limits(), min_size=1, max_size=3)


@settings(max_examples=100)
@given(traffic=CALLS, rules=RULES)
def test_it_admits_exactly_what_the_bucket_would(server, traffic, rules):
    """Two keys, the same traffic: equal but for the wait of a grant; and a third that is asked by both in turn."""
    pipeline = server.client.pipeline(transaction=False)
    pipeline.execute_command("DEL", "leaky", "bucket", "both")
    moves = list(concrete(Leaky(), traffic, rules))
    for n, (now_us, words, *_) in enumerate(moves):
        pipeline.execute_command("RL.DEBUG", "CLOCK", now_us)
        pipeline.execute_command(COMMAND, "leaky", *words)
        pipeline.execute_command(BUCKET, "bucket", *words)
        pipeline.execute_command(COMMAND if n % 2 else BUCKET, "both", *words)
        for key in ("leaky", "bucket", "both"):
            pipeline.execute_command("RL.STATE", key)
    replies = pipeline.execute(raise_on_error=False)[1:]
    for n in range(len(moves)):
        leaky, bucket, both, *states = replies[7 * n + 1 : 7 * n + 7]
        assert states[0] == states[1] == states[2]
        if isinstance(bucket, Exception):
            assert str(leaky) == str(bucket) == str(both)
            continue
        assert leaky[:3] + leaky[4:] == bucket[:3] + bucket[4:] == both[:3] + both[4:]
        assert leaky[3] == bucket[3] or (bucket[0] > 0 and bucket[3] == 0 < leaky[3])
    digests = {server.run("DEBUG", "DIGEST-VALUE", key)[0] for key in ("leaky", "bucket", "both")}
    assert len(digests) == 1


@settings(max_examples=150)
@given(traffic=CALLS, rules=RULES)
def test_every_field_of_every_reply_is_the_models(server, traffic, rules):
    check_traffic(server.client, COMMAND, Leaky(), traffic, rules, too_much="ten years")


@settings(max_examples=12)
@given(traffic=CALLS, rules=RULES)
def test_the_model_holds_in_every_topology(db, traffic, rules):
    check_traffic(db.node("k"), COMMAND, Leaky(), traffic, rules, too_much="ten years")


def test_another_kind_on_a_live_key_is_an_error(db):
    take(db, "k", "5/m", "COST", 5)
    with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
        db.run("RL.FIXED", "k", "5/m")
    db.clock.freeze(START_US + 60_000_000)
    assert db.run("RL.FIXED", "k", "5/m")[:3] == [1, 5, 4]
    with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
        take(db, "k", "5/m")


# ---- copies, errors

LIVELY = [["5/h"], ["100/d"], ["7/250h", "BURST", "3"], ["300000000/d"], ["9/h", "BURST", "50"]]


@pytest.mark.parametrize("clock", ["frozen", "real"])
def test_copies_are_equal_after_any_traffic(db, clock):
    if clock == "real":
        db.clock.release()
    mix(db, COMMAND, LIVELY, 3, step_us=600_000_000)


@pytest.mark.topologies("aof")
def test_a_rewritten_log_is_equal(db):
    mix(db, COMMAND, LIVELY, 5, step_us=600_000_000)
    check_rewritten_log(db, "no")


def test_dumps_and_copies_are_equal(server):
    mix(server, COMMAND, LIVELY, 6, step_us=600_000_000)
    check_dumps_and_copies(server)


def table():
    yield from wrong_everywhere(COMMAND, "10/s")
    yield from (([COMMAND, "k", rate], "ERR", what) for rate, what in WRONG_RATES)
    for n in ("0", "-1", "x", "", "1000000000001"):
        yield [COMMAND, "k", "10/s", "BURST", n], "ERR", "BURST"
    yield [COMMAND, "k", "1/366d", "BURST", "10"], "ERR", ("BURST", "ten years")
    yield [COMMAND, "k", "1/366d", "COST", "10", "FORCE"], "ERR", "ten years"
    for word in ("ALIGN", "SLOTS", "EXACT"):
        yield [COMMAND, "k", "10/s", word], "ERR", ("option", "BURST", "KEEP")


@pytest.mark.parametrize("call, prefix, needles", table(), ids=map(label, table()))
def test_an_error_names_the_argument_and_changes_nothing(server, call, prefix, needles):
    take(server, "leaky", "10/h", "COST", 3)
    server.run("RL.FIXED", "other", "10/h")
    server.run("SET", "string", "x")
    check_refused(server, call, prefix, needles)
