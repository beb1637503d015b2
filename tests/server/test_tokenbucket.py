"""RL.TOKENBUCKET: what it answers, and that it answers what the exact model says, whatever the traffic."""

import pytest
import redis
from harness import START_US, pairs
from hypothesis import example, given, settings
from hypothesis import strategies as st
from model import TEN_YEARS_US, UNIT_MS, Ask, Beyond, Limit, TokenBucket

COMMAND = "RL.TOKENBUCKET"


def take(db, key, rate, *options):
    return db.run(COMMAND, key, rate, *options)


# ---- by example


def test_a_first_session(db):
    assert [take(db, "user:42", "3/m") for _ in range(4)] == [
        [1, 3, 2, 0, 20000],
        [1, 3, 1, 0, 40000],
        [1, 3, 0, 0, 60000],
        [0, 3, 0, 20000, 60000],
    ]


def test_tokens_come_back_continuously(db):
    take(db, "k", "10/s", "COST", 10)
    db.clock.advance(ms=99)
    assert take(db, "k", "10/s") == [0, 10, 0, 1, 901]
    db.clock.advance(ms=1)
    assert take(db, "k", "10/s") == [1, 10, 0, 0, 1000]


def test_polling_faster_than_the_rate_loses_no_fraction(db):
    take(db, "k", "1/s", "BURST", 2, "COST", 2)
    granted = 0
    for _ in range(100):
        db.clock.advance(us=70_001)
        granted += take(db, "k", "1/s", "BURST", 2)[0]
    assert granted == 7


@pytest.mark.parametrize(
    "rate, cost", [("10/s", 3), ("7/250ms", 5), ("1/10s", 1), ("300000000/s", 123456789), ("3/7s", 2)]
)
def test_a_wait_is_exact(db, rate, cost):
    limit = take(db, "k", rate, "COST", cost)[1]
    take(db, "k", rate, "COST", limit, "UPTO")
    wait_ms = take(db, "k", rate, "COST", cost)[3]
    db.clock.advance(ms=wait_ms - 1)
    assert take(db, "k", rate, "COST", cost)[:1] + take(db, "k", rate, "COST", cost, "PEEK")[3:4] == [0, 1]
    db.clock.advance(ms=1)
    assert take(db, "k", rate, "COST", cost)[0] == cost


def test_a_cost_above_the_limit_never_passes(db):
    assert take(db, "k", "10/s", "COST", 11) == [0, 10, 10, -1, 0]
    assert take(db, "k", "10/s", "BURST", 11, "COST", 11)[0] == 11


def test_a_burst_is_the_capacity(db):
    assert take(db, "k", "10/s", "BURST", 100, "COST", 100) == [100, 100, 0, 0, 10000]
    assert take(db, "k", "10/s", "BURST", 100) == [0, 100, 0, 100, 10000]


def test_a_minimum_gap_between_sends(db):
    assert take(db, "outbox", "1/10s")[0] == 1
    db.clock.advance(ms=9999)
    assert take(db, "outbox", "1/10s") == [0, 1, 0, 1, 1]
    db.clock.advance(ms=1)
    assert take(db, "outbox", "1/10s")[0] == 1


def test_a_peek_answers_and_changes_nothing(db):
    assert take(db, "k", "5/m", "COST", 5, "PEEK") == [5, 5, 5, 0, 0]
    assert db.state("k") is None
    take(db, "k", "5/m", "COST", 3)
    before = db.state("k")
    assert take(db, "k", "5/m", "COST", 3, "PEEK") == [0, 5, 2, 12000, 36000]
    assert take(db, "k", "5/m", "COST", 3, "PEEK", "UPTO") == [2, 5, 2, 0, 36000]
    assert db.state("k") == before


def test_force_goes_into_debt_that_time_pays_back(db):
    assert take(db, "k", "10/s", "COST", 25, "FORCE") == [25, 10, -15, 0, 2500]
    assert take(db, "k", "10/s") == [0, 10, -15, 1600, 2500]
    db.clock.advance(ms=1600)
    assert take(db, "k", "10/s") == [1, 10, 0, 0, 1000]


def test_upto_grants_what_fits(db):
    assert take(db, "k", "10/s", "COST", 8) == [8, 10, 2, 0, 800]
    assert take(db, "k", "10/s", "COST", 8, "UPTO") == [2, 10, 0, 0, 1000]
    assert take(db, "k", "10/s", "COST", 8, "UPTO") == [0, 10, 0, 100, 1000]
    assert take(db, "other", "10/s", "COST", 1000, "UPTO") == [10, 10, 0, 0, 1000]


def test_a_refund_gives_back_whole_units_that_are_used(db):
    take(db, "k", "10/m", "COST", 5)
    assert take(db, "k", "10/m", "REFUND", 2) == [2, 10, 7, 0, 18000]
    db.clock.advance(ms=3000)  # half a unit has come back, and a half cannot be refunded
    assert take(db, "k", "10/m", "REFUND", 9) == [2, 10, 9, 0, 3000]
    assert take(db, "k", "10/m", "REFUND", 9) == [0, 10, 9, 0, 3000]


def test_a_refund_of_everything_leaves_no_key(db):
    take(db, "k", "10/m", "COST", 5)
    assert take(db, "k", "10/m", "REFUND", 5) == [5, 10, 10, 0, 0]
    assert db.run("EXISTS", "k") == 0


def test_a_refund_never_makes_a_key(db):
    assert take(db, "k", "10/m", "REFUND", 5) == [0, 10, 10, 0, 0]
    assert db.run("EXISTS", "k") == 0


def test_keep_counts_what_was_granted_and_when(db):
    take(db, "k", "10/s", "COST", 4, "KEEP", "1h")
    db.clock.advance(ms=1000)
    take(db, "k", "10/s", "COST", 3, "KEEP", "1h")
    take(db, "k", "10/s", "COST", 2)  # without KEEP: not counted
    take(db, "k", "10/s", "REFUND", 1, "KEEP", "1h")
    state = db.state("k")
    assert (state["granted"], state["last_ms"]) == (6, START_US // 1000 + 1000)


def test_keep_outlives_the_bucket(db):
    take(db, "k", "10/s", "KEEP", "1h")
    db.clock.advance(ms=3_599_999)
    assert (db.state("k")["granted"], db.state("k")["remaining"]) == (1, 10)
    db.clock.advance(ms=1)
    assert db.state("k") is None


def test_keep_of_a_refused_call_keeps_nothing(db):
    take(db, "k", "1/m")
    take(db, "k", "1/m", "KEEP", "1h")
    assert "granted" not in db.state("k")


def test_a_raised_limit_gives_the_difference_at_once(db):
    take(db, "k", "10/m", "COST", 10)
    assert take(db, "k", "15/m", "COST", 5) == [5, 15, 0, 0, 60000]


def test_a_lowered_limit_leaves_a_debt(db):
    take(db, "k", "10/m", "COST", 10)
    assert take(db, "k", "4/m") == [0, 4, -6, 105000, 150000]


def test_flapping_parameters_grant_nothing_extra(db):
    rates = ["10/m", "10/h", "10/250ms", "1000/d", "3/7s"]
    granted = sum(take(db, "k", rate, "BURST", 10)[0] for rate in rates * 10)
    assert granted == 10


def test_a_change_of_parameters_rounds_against_the_caller(db):
    take(db, "k", "1/7ms", "BURST", 5)
    db.clock.advance(us=1)
    take(db, "k", "1/7ms", "BURST", 5)  # 1 6999/7000 are used
    take(db, "k", "1/ms", "BURST", 5)  # which is 2 in thousandths, and one more
    db.clock.advance(us=2999)
    assert db.state("k")["reset_ms"] == 1
    db.clock.advance(us=1)
    assert db.state("k") is None


def test_a_refused_call_does_not_change_the_parameters(db):
    take(db, "k", "10/m", "COST", 10)
    take(db, "k", "1/h")
    assert db.state("k")["rule"] == "10/m"


def test_a_step_back_grants_nothing_and_locks_nothing(db):
    take(db, "k", "10/m", "COST", 10)
    db.clock.back(ms=86_400_000)
    assert take(db, "k", "10/m") == [0, 10, 0, 6000, 60000]
    db.clock.advance(ms=6000)  # counted from the refused call, which moved the state to now
    assert take(db, "k", "10/m")[0] == 1


def test_a_state_that_outlived_itself_is_gone_whatever_the_parameters(db):
    take(db, "k", "10/s", "COST", 10)
    db.clock.advance(ms=1000)
    assert db.state("k") is None
    assert take(db, "k", "10/h", "COST", 10)[0] == 10


def test_what_is_owed_is_bounded(db):
    limit = (COMMAND, "k", "1000000000000/ms", "COST", 10**12, "FORCE")
    for _ in range(1000):
        db.node("k").execute_command(*limit)
    with pytest.raises(redis.ResponseError, match="FORCE|COST|owed"):
        db.node("k").execute_command(*limit)
    assert db.state("k")["used"] == 10**15


def test_it_works_in_a_transaction(db):
    transaction = db.node("k").pipeline(transaction=True)
    for _ in range(3):
        transaction.execute_command(COMMAND, "k", "2/m")
    assert [reply[0] for reply in transaction.execute()] == [1, 1, 0]


def test_it_works_in_a_script(db):
    script = "return redis.call('RL.TOKENBUCKET', KEYS[1], ARGV[1], 'COST', 2)"
    assert db.node("k").eval(script, 1, "k", "3/m") == [2, 3, 1, 0, 40000]
    assert db.node("k").eval(script, 1, "k", "3/m") == [0, 3, 1, 20000, 40000]


def test_it_works_in_a_function(db):
    node = db.node("k")
    node.function_load(
        "#!lua name=limits\n"
        "redis.register_function('allowed', function(keys) return redis.call('RL.TOKENBUCKET', keys[1], '1/m')[1] end)",
        replace=True,
    )
    assert [node.fcall("allowed", 1, "k") for _ in range(2)] == [1, 0]
    node.function_flush()


@pytest.mark.parametrize("protocol", [2, 3])
def test_both_protocols_get_five_integers(server, protocol):
    client = server.connect(protocol=protocol)
    assert client.execute_command(COMMAND, "k", "5/m", "COST", 2) == [2, 5, 3, 0, 24000]


@pytest.mark.parametrize("key", [b"", b"\x00", b"\xff\xfe\r\n", bytes(range(256)), b"x" * 1_000_000], ids=range(5))
def test_keys_are_bytes(db, key):
    assert take(db, key, "5/m") == [1, 5, 4, 0, 12000]
    assert take(db, key, "5/m") == [1, 5, 3, 0, 24000]
    assert db.run("DEL", key) == 1


@pytest.mark.parametrize("keywords", [("cost", "burst", "upto"), ("Cost", "bUrSt", "UpTo")])
def test_keywords_in_any_case_and_order(db, keywords):
    cost, burst, upto = keywords
    assert take(db, "k", "5/M", upto, burst, 9, cost, 20) == [9, 9, 0, 0, 108000]


@pytest.mark.parametrize(
    "one, other",
    [("10/s", "10/1s"), ("10/second", "10/1000ms"), ("10/m", "10/60s"), ("10/minute", "10/1m"), ("10/h", "10/hour"),
     ("10/60m", "10/HOUR"), ("10/d", "10/24h"), ("10/day", "10/1440m"), ("10/w", "10/7d"), ("010/WEEK", "10/0168h")],
)  # fmt: skip
def test_notations_of_one_rate(db, one, other):
    take(db, "one", one)
    take(db, "other", other)
    assert db.state("one") == db.state("other")


# ---- against the model


def limits():
    """Any legal limit: a rate and a burst that refills within ten years."""
    periods = st.sampled_from(
        [f"{n}{unit}" for unit in UNIT_MS for n in (1, 2, 7, 50)] + ["250ms", "30m", "999ms", "366d"]
    )
    counts = st.one_of(st.integers(1, 20), st.integers(1, 10**12))
    return st.builds(with_burst, counts, periods, st.one_of(st.none(), st.integers(1, 50), st.integers(1, 10**12)))


def with_burst(count, period, burst):
    unit = period.lstrip("0123456789")
    period_us = int(period[: -len(unit)]) * UNIT_MS[unit] * 1000
    return Limit(count, period_us, min(burst or count, TEN_YEARS_US * count // period_us))


EXTREMES = [
    with_burst(*limit)
    for limit in [
        (1, "366d", 9),
        (10**12, "1ms", None),
        (3 * 10**8, "1s", None),
        (7, "250ms", 3),
        (10**12, "366d", None),
    ]
]
COSTS = st.one_of(
    st.just(("units", 1)),
    st.tuples(st.just("units"), st.integers(1, 30)),
    st.tuples(st.sampled_from(["limit", "remaining"]), st.integers(-2, 2)),
    st.tuples(st.just("units"), st.integers(1, 10**12)),
)
STEPS = st.one_of(  # of time, some relative to what was answered last
    st.just(("us", 0)),
    st.tuples(st.sampled_from(["wait", "reset", "end"]), st.sampled_from([-1000, -1, 0, 1, 1000])),
    st.tuples(st.just("us"), st.one_of(st.integers(-5000, 5000), st.integers(-(10**12), 10**13))),
)
MODES = st.sampled_from(["TAKE", "TAKE", "TAKE", "FORCE", "UPTO", "REFUND"])
KEEPS = st.sampled_from([0, 0, 0, 1, 60_000, 366 * 86_400_000])
CALLS = st.lists(
    st.tuples(STEPS, st.integers(0, 2), MODES, COSTS, st.booleans(), KEEPS), min_size=1, max_size=30
)  # fmt: skip


def concrete(calls, rules):
    """The calls in numbers, each with what the model says to it."""
    bucket, now_us, reply = TokenBucket(), START_US, [0] * 5
    for (since, step), rule, mode, (base, cost), peek, keep_ms in calls:
        limit = rules[rule % len(rules)]
        end_us = bucket.state.ends_at_us - now_us if bucket.state else 0
        now_us += step + {"us": 0, "wait": max(reply[3], 0) * 1000, "reset": reply[4] * 1000, "end": end_us}[since]
        now_us = min(max(now_us, 0), 2**53 - 1)
        cost += {"units": 0, "limit": limit.burst, "remaining": reply[2]}[base]
        peek = peek and mode in ("TAKE", "UPTO")
        ask = Ask(min(max(cost, 1), 10**12), mode, peek, 0 if peek else keep_ms)
        try:
            reply = bucket.call(limit, ask, now_us)
            answer = reply
        except Beyond:
            answer = Beyond
        yield now_us, arguments(limit, ask), answer, ask.cost, bucket.describe(now_us, ask.cost)


def arguments(limit, ask):
    words = ["REFUND" if ask.mode == "REFUND" else "COST", ask.cost]
    if ask.mode in ("FORCE", "UPTO"):
        words.append(ask.mode)
    if ask.peek:
        words.append("PEEK")
    if ask.keep_ms:
        words += ["KEEP", f"{ask.keep_ms}ms"]
    return [f"{limit.count}/{limit.period_us // 1000}ms", "BURST", limit.burst, *words]


def check(client, calls, rules):
    """The clock stands still but for the steps; what the state says afterwards must agree too."""
    expected = list(concrete(calls, rules))
    pipeline = client.pipeline(transaction=False)
    pipeline.execute_command("DEL", "k")
    for now_us, words, _, cost, _ in expected:
        pipeline.execute_command("RL.DEBUG", "CLOCK", now_us)
        pipeline.execute_command(COMMAND, "k", *words)
        pipeline.execute_command("RL.STATE", "k", "COST", cost)
    replies = pipeline.execute(raise_on_error=False)
    for (now_us, words, answer, _, state), reply, flat in zip(expected, replies[2::3], replies[3::3]):
        call = f"at {now_us}: {' '.join(map(str, words))}"
        if answer is Beyond:
            assert isinstance(reply, redis.ResponseError) and "ten years" in str(reply), call
        else:
            assert reply == answer, call
        assert pairs(flat) == state, call


RULES = st.lists(st.one_of(limits(), st.sampled_from(EXTREMES)), min_size=1, max_size=3)


@settings(max_examples=500)
@given(calls=CALLS, rules=RULES)
@example(calls=[(("us", 0), 0, "FORCE", ("units", 10**12), False, 0)] * 12, rules=EXTREMES)
def test_every_field_of_every_reply_is_the_models(server, calls, rules):
    check(server.client, calls, rules)


@settings(max_examples=50)
@given(calls=CALLS, rules=RULES)
def test_the_model_holds_in_every_topology(db, calls, rules):
    check(db.node("k"), calls, rules)
