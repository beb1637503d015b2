"""RL.SLIDING: at most so many units in any window of the period, logged (EXACT) or counted by slots of time."""

from random import Random

import pytest
import redis
from harness import START_US
from hypothesis import given, settings
from hypothesis import strategies as st
from model import UNIT_MS
from models_windows import Sliding, SlidingLimit
from windows import (
    WRONG_RATES,
    calls,
    check_dumps_and_copies,
    check_forged,
    check_refused,
    check_rewritten_log,
    check_traffic,
    label,
    mix,
    wrong_everywhere,
)

COMMAND = "RL.SLIDING"
START_MS = START_US // 1000
HOUR = 3_600_000


def take(db, key, rate, *options):
    return db.run(COMMAND, key, rate, *options)


def replies(server, calls):
    """Of calls at instants: pairs of milliseconds after the start, and the words after the key."""
    pipeline = server.client.pipeline(transaction=False)
    for ms, words in calls:
        pipeline.execute_command("RL.DEBUG", "CLOCK", START_US + ms * 1000)
        pipeline.execute_command(COMMAND, "k", *words)
    server.clock.now_us = START_US + ms * 1000
    return pipeline.execute()[1::2]


# ---- EXACT, by example


def test_a_first_session(db):
    assert take(db, "ip:10.0.0.7", "3/m") == [1, 3, 2, 0, 60000]
    db.clock.advance(ms=10_000)
    assert take(db, "ip:10.0.0.7", "3/m", "COST", 2) == [2, 3, 0, 0, 60000]
    assert take(db, "ip:10.0.0.7", "3/m") == [0, 3, 0, 50000, 60000]
    assert take(db, "ip:10.0.0.7", "3/m", "COST", 2) == [0, 3, 0, 60000, 60000]
    db.clock.advance(ms=50_000)
    assert take(db, "ip:10.0.0.7", "3/m") == [1, 3, 0, 0, 60000]


def test_a_unit_is_gone_one_period_after_its_grant(db):
    take(db, "k", "1/s", "EXACT")
    db.clock.advance(ms=999)
    assert take(db, "k", "1/s", "EXACT") == [0, 1, 0, 1, 1]
    db.clock.advance(ms=1)
    assert take(db, "k", "1/s", "EXACT") == [1, 1, 0, 0, 1000]


def test_a_burst_at_the_boundary_is_not_granted_twice(db):
    db.clock.advance(ms=59_900)
    assert take(db, "k", "10/m", "COST", 10)[0] == 10
    db.clock.advance(ms=200)  # a fixed window would begin anew here
    assert take(db, "k", "10/m", "COST", 10) == [0, 10, 0, 59_800, 59_800]


@pytest.mark.parametrize("cost, wait_ms", [(2, 0), (3, 40_000), (4, 40_000), (5, 50_000), (9, 55_000), (11, -1)])
def test_a_wait_is_exact_for_any_cost(db, cost, wait_ms):
    for units, ms in [(2, 10_000), (1, 5000), (5, 5000)]:
        take(db, "k", "10/m", "COST", units)
        db.clock.advance(ms=ms)
    assert take(db, "k", "10/m", "COST", cost, "PEEK")[3] == wait_ms
    if wait_ms > 0:
        db.clock.advance(ms=wait_ms - 1)
        assert take(db, "k", "10/m", "COST", cost, "PEEK")[3] == 1
        db.clock.advance(ms=1)
        assert take(db, "k", "10/m", "COST", cost)[0] == cost


def test_a_refund_takes_the_newest_first(db):
    take(db, "k", "10/m", "COST", 5)
    db.clock.advance(ms=10_000)
    take(db, "k", "10/m", "COST", 5)
    assert take(db, "k", "10/m", "REFUND", 6) == [6, 10, 6, 0, 50_000]
    assert take(db, "k", "10/m", "REFUND", 6) == [4, 10, 10, 0, 0]
    assert db.run("EXISTS", "k") == 0
    assert take(db, "k", "10/m", "REFUND", 6) == [0, 10, 10, 0, 0]


def test_what_has_left_the_window_cannot_be_refunded(db):
    take(db, "k", "10/m", "COST", 5)
    db.clock.advance(ms=30_000)
    take(db, "k", "10/m", "COST", 2)
    db.clock.advance(ms=30_000)
    assert take(db, "k", "10/m", "REFUND", 9) == [2, 10, 10, 0, 0]


def test_force_goes_into_debt_until_it_leaves(db):
    assert take(db, "k", "10/m", "COST", 25, "FORCE") == [25, 10, -15, 0, 60_000]
    assert take(db, "k", "10/m") == [0, 10, -15, 60_000, 60_000]
    db.clock.advance(ms=60_000)
    assert take(db, "k", "10/m") == [1, 10, 9, 0, 60_000]


def test_upto_grants_what_fits(db):
    take(db, "k", "10/m", "COST", 8)
    assert take(db, "k", "10/m", "COST", 8, "UPTO") == [2, 10, 0, 0, 60_000]
    assert take(db, "k", "10/m", "COST", 8, "UPTO") == [0, 10, 0, 60_000, 60_000]


def test_a_peek_answers_and_changes_nothing(db):
    assert take(db, "k", "5/m", "PEEK") == [1, 5, 5, 0, 0]
    assert db.run("EXISTS", "k") == 0
    take(db, "k", "5/m", "COST", 3)
    before = db.state("k")
    assert take(db, "k", "5/m", "COST", 3, "PEEK") == [0, 5, 2, 60_000, 60_000]
    assert db.state("k") == before


def test_a_step_back_grants_nothing_and_locks_nothing(db):
    take(db, "k", "10/m", "COST", 4)
    db.clock.advance(ms=30_000)
    take(db, "k", "10/m", "COST", 6)
    db.clock.back(ms=86_400_000)
    assert take(db, "k", "10/m") == [0, 10, 0, 60_000, 60_000]
    db.clock.advance(ms=60_000)  # counted from the refused call, which moved all of it to then
    assert take(db, "k", "10/m", "COST", 10)[0] == 10


def test_a_small_step_back_leaves_what_is_not_ahead(db):
    take(db, "k", "10/m", "COST", 4)
    db.clock.advance(ms=30_000)
    take(db, "k", "10/m", "COST", 6)
    db.clock.back(ms=10_000)
    assert take(db, "k", "10/m", "COST", 4) == [0, 10, 0, 40_000, 60_000]


def test_a_step_back_is_repaired_before_the_parameters_change(db):
    """Else the answer would depend on whether somebody was refused before."""
    take(db, "k", "10/10s", "COST", 5)
    db.clock.advance(ms=9000)
    take(db, "k", "10/10s", "COST", 5)
    db.clock.back(ms=7000)
    assert take(db, "k", "10/3s", "COST", 6, "PEEK") == [0, 10, 0, 3000, 3000]
    assert take(db, "k", "10/3s", "COST", 6) == [0, 10, 0, 3000, 3000]
    assert take(db, "k", "10/3s", "COST", 6) == [0, 10, 0, 3000, 3000]


def test_the_state_tells_everything(db):
    take(db, "k", "10/60s", "COST", 4, "KEEP", "1h")
    db.clock.advance(ms=1000)
    assert db.state("k", "COST", 7) == {
        "kind": "sliding",
        "rule": "10/m",
        "limit": 10,
        "remaining": 6,
        "used": 4,
        "wait_ms": 59_000,
        "reset_ms": 59_000,
        "granted": 4,
        "last_ms": START_MS,
    }
    assert db.run("TYPE", "k") == "rl-window"


def test_keep_outlives_the_window(db):
    take(db, "k", "10/s", "KEEP", "1h")
    db.clock.advance(ms=HOUR - 1)
    assert (db.state("k")["granted"], db.state("k")["used"]) == (1, 0)
    db.clock.advance(ms=1)
    assert db.state("k") is None


# ---- SLOTS, by example


def at_slot_start(db, period_ms):
    db.clock.freeze((START_MS // period_ms + 1) * period_ms * 1000)


def test_a_unit_leaves_one_period_after_the_end_of_its_slot(db):
    at_slot_start(db, 60_000)
    assert take(db, "k", "3/m", "SLOTS", 6, "COST", 2) == [2, 3, 1, 0, 70_000]
    db.clock.advance(ms=9999)
    assert take(db, "k", "3/m", "SLOTS", 6) == [1, 3, 0, 0, 60_001]
    db.clock.advance(ms=60_000)
    assert take(db, "k", "3/m", "SLOTS", 6) == [0, 3, 0, 1, 1]
    db.clock.advance(ms=1)
    assert take(db, "k", "3/m", "SLOTS", 6, "COST", 3) == [3, 3, 0, 0, 70_000]


def test_the_width_of_a_slot_is_rounded_up(db):
    db.clock.freeze(12_000_000)  # a multiple of 3 ms and of 4 ms
    assert take(db, "k", "1/10ms", "SLOTS", 4) == [1, 1, 0, 0, 13]
    assert take(db, "other", "1/10ms", "SLOTS", 3) == [1, 1, 0, 0, 14]


def test_a_rule_with_slots_says_so(db):
    take(db, "k", "1000000/m", "SLOTS", 64)
    assert db.state("k")["rule"] == "1000000/m SLOTS 64"


def test_slots_take_the_same_memory_for_any_count(server):
    take(server, "small", "10/h", "SLOTS", 8)
    for n in range(1000):
        server.clock.advance(ms=4000)
        take(server, "large", "1000000000000/h", "SLOTS", 8, "COST", 10**6 + n)
    assert server.run("MEMORY", "USAGE", "large") <= server.run("MEMORY", "USAGE", "small") + 16


# ---- changed parameters


def test_a_raised_limit_gives_the_difference_at_once(db):
    take(db, "k", "10/m", "COST", 10)
    assert take(db, "k", "15/m", "COST", 5) == [5, 15, 0, 0, 60_000]


def test_a_lowered_limit_leaves_a_debt(db):
    take(db, "k", "10/m", "COST", 10)
    assert take(db, "k", "4/m") == [0, 4, -6, 60_000, 60_000]


def test_another_period_counts_from_the_grants(db):
    take(db, "k", "10/m", "COST", 5)
    db.clock.advance(ms=20_000)
    take(db, "k", "10/m", "COST", 5)
    assert take(db, "k", "10/h", "PEEK")[2:] == [0, HOUR - 20_000, HOUR]
    assert take(db, "k", "10/10s", "PEEK")[2:] == [5, 0, 10_000]


def test_exact_to_slots_and_back_keeps_what_is_used(db):
    at_slot_start(db, 60_000)
    take(db, "k", "10/m", "COST", 4)
    assert take(db, "k", "10/m", "SLOTS", 6, "COST", 5) == [5, 10, 1, 0, 70_000]
    db.clock.advance(ms=5000)
    take(db, "k", "10/m", "SLOTS", 6)
    # Back to the log: all of the slot counts as of its last write.
    assert take(db, "k", "10/m", "EXACT", "PEEK") == [0, 10, 0, 60_000, 60_000]
    db.clock.advance(ms=60_000)
    assert take(db, "k", "10/m", "EXACT", "COST", 10)[0] == 10


def test_flapping_parameters_grant_nothing_extra(db):
    rates = [["10/m"], ["10/m", "SLOTS", 2], ["10/h"], ["10/h", "SLOTS", 7], ["10/d", "SLOTS", 1024]]
    assert sum(take(db, "k", *rate)[0] for rate in rates * 10) == 10


def test_a_refused_call_does_not_change_the_mode(db):
    take(db, "k", "10/m", "COST", 10)
    take(db, "k", "10/m", "SLOTS", 4)
    assert db.state("k")["rule"] == "10/m"


# ---- what a log costs


def test_a_grant_takes_at_most_five_bytes(server):
    take(server, "one", "1000/h")
    alone = server.run("MEMORY", "USAGE", "one")
    random = Random(1)
    instants = sorted(random.sample(range(HOUR), 1000))
    assert all(reply[0] == 1 for reply in replies(server, ((ms, ["1000/h"]) for ms in instants)))
    assert server.state("k")["used"] == 1000
    assert server.run("MEMORY", "USAGE", "k") - alone <= 5 * 1000
    assert server.run("MEMORY", "USAGE", "k", "SAMPLES", 0) <= 5 * 1000 + 200


def test_memory_is_given_back_as_the_window_empties(server):
    """By grants; a refusal and a read trim nothing."""
    rate = ["20000/h"]
    replies(server, ((n * 180, rate) for n in range(20_000)))
    full = server.run("MEMORY", "USAGE", "k")
    server.clock.advance(ms=HOUR * 6 // 10)
    assert take(server, "k", *rate, "COST", 15_000)[0] == 0
    server.state("k")
    assert server.run("MEMORY", "USAGE", "k") == full
    take(server, "k", *rate)
    assert server.run("MEMORY", "USAGE", "k") < full * 0.7
    server.clock.advance(ms=HOUR * 4 // 10 - 2000)
    take(server, "k", *rate)
    assert server.run("MEMORY", "USAGE", "k") < full / 20
    server.clock.advance(ms=HOUR)
    take(server, "k", *rate)
    take(server, "fresh", *rate)
    assert server.run("MEMORY", "USAGE", "k") <= server.run("MEMORY", "USAGE", "fresh") + 16


def test_a_refusal_trims_nothing_and_writes_nothing(server):
    take(server, "k", "5/m", "COST", 3)
    server.clock.advance(ms=30_000)
    take(server, "k", "5/m", "COST", 2)
    server.clock.advance(ms=30_000)
    before = server.contents(), server.info("rdb_changes_since_last_save")
    assert take(server, "k", "5/m", "COST", 4)[0] == 0
    assert (server.contents(), server.info("rdb_changes_since_last_save")) == before


LONG = 65_000


@pytest.fixture(scope="module")
def long_log(one_server):
    """A key with that many entries, one for each millisecond, ready to be restored."""
    one_server.run("FLUSHALL")
    replies(one_server, ((n, ["65536/d"]) for n in range(LONG)))
    return one_server.connect().dump("k")


@pytest.fixture
def with_long_log(server, long_log):
    server.connect().restore("k", 0, long_log)
    server.clock.freeze(START_US + (LONG - 1) * 1000)
    return server


def test_a_long_log_is_about_as_cheap_as_a_bucket(with_long_log):
    """Loosely, as machines are noisy; a scan of the log for each call would be hundreds of times as much."""
    server, rate = with_long_log, ["65536/d"]
    server.run("RL.TOKENBUCKET", "bucket", "1000/d")
    server.run("CONFIG", "RESETSTAT")
    pipeline = server.client.pipeline(transaction=False)
    for n in range(500):
        pipeline.execute_command("RL.DEBUG", "CLOCK", server.clock.now_us + 1000 * (n + 1))
        pipeline.execute_command(COMMAND, "k", *rate)
        pipeline.execute_command(COMMAND, "k", *rate, "COST", 65_000)
        pipeline.execute_command("RL.TOKENBUCKET", "bucket", "1000/d")
        pipeline.execute_command("RL.TOKENBUCKET", "bucket", "1000/d", "COST", 1000)
    pipeline.execute()
    window, bucket = (server.info(f"cmdstat_{name}", "commandstats") for name in (COMMAND, "RL.TOKENBUCKET"))
    assert window["calls"] == bucket["calls"] == 1000
    assert window["usec_per_call"] <= 3 * bucket["usec_per_call"] + 3


def test_force_cannot_grow_a_log_without_bound(with_long_log):
    """At 65,536 entries it joins the newest, which then leaves later: on the strict side."""
    server, rate = with_long_log, ["10/d", "FORCE"]
    replies(server, ((n, rate) for n in range(LONG, 65_536)))
    full = server.run("MEMORY", "USAGE", "k")
    replies(server, ((65_536 + n, rate) for n in range(1000)))
    assert server.run("MEMORY", "USAGE", "k") <= full + 16
    assert server.state("k")["used"] == 66_536
    server.clock.freeze(START_US + (86_400_000 + 65_534) * 1000)  # all before the newest are gone
    assert server.state("k")["used"] == 1001
    server.clock.advance(ms=1000)
    assert (server.state("k")["used"], server.state("k")["reset_ms"]) == (1001, 1)


@pytest.mark.topologies("replica")
def test_one_grant_ships_little_however_long_the_log(db):
    node = db.node("k")
    pipeline = node.pipeline(transaction=False)
    for n in range(10_000):
        pipeline.execute_command("RL.DEBUG", "CLOCK", START_US + n * 1000)
        pipeline.execute_command(COMMAND, "k", "65536/d")
    pipeline.execute()
    before = node.info("replication")["master_repl_offset"]
    for n in range(10):
        db.clock.freeze(START_US + 10_000_000 + n * 1000)
        take(db, "k", "65536/d")
    assert node.info("replication")["master_repl_offset"] - before < 10 * 200


# ---- the law


@pytest.mark.parametrize("slots", [0, 2, 8, 64])
@pytest.mark.parametrize("seed", range(3))
def test_no_window_ever_holds_more_than_the_limit(server, slots, seed):
    random = Random(f"{slots}/{seed}")
    count, period_ms = random.choice([(5, 1000), (20, 999), (3, 64), (100, 60_000)])
    words = [f"{count}/{period_ms}ms", *(["SLOTS", slots] if slots else [])]
    at_ms, asked = 0, []
    for _ in range(1500):
        at_ms += random.choice(
            [0, 0, 1, random.randrange(period_ms // 3), random.randrange(period_ms // count * 2 + 1)]
        )
        cost = random.choice([1, 1, 1, random.randint(1, count)])
        asked.append((at_ms, [*words, "COST", cost, *random.choice([[], ["UPTO"]])]))
    granted = [(ms, reply[0]) for (ms, _), reply in zip(asked, replies(server, asked))]
    first = held = 0
    for ms, units in granted:
        held += units
        while granted[first][0] <= ms - period_ms:
            held -= granted[first][1]
            first += 1
        assert held <= count
    assert sum(units for _, units in granted) > count * 5


# ---- kinds on one key


@pytest.mark.parametrize(
    "other", [["RL.TOKENBUCKET", "k", "5/m"], ["RL.FIXED", "k", "5/m"], ["RL.QUOTA", "k", "5/day"]], ids=lambda w: w[0]
)
@pytest.mark.parametrize("mode", [[], ["SLOTS", 6]], ids=["exact", "slots"])
def test_another_kind_on_a_live_key_is_an_error(db, other, mode):
    reset_ms = take(db, "k", "5/m", *mode, "COST", 5)[4]
    for words in ([], ["PEEK"], ["REFUND", 1]):
        with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
            db.run(*other, *words)
    db.clock.advance(ms=reset_ms)
    assert db.run(*other)[:3] == [1, 5, 4], "what has outlived itself is absent"


# ---- against the model


def limits():
    periods = [n * ms for ms in UNIT_MS.values() for n in (1, 2, 7)] + [10, 250, 999, 1_800_000, 366 * 86_400_000]
    exact = st.builds(SlidingLimit, st.one_of(st.integers(1, 20), st.integers(1, 65_536)), st.sampled_from(periods))
    counts = st.one_of(st.integers(1, 20), st.integers(1, 10**12))
    slots = st.sampled_from([2, 3, 7, 8, 64, 1024])
    return st.one_of(exact, st.builds(SlidingLimit, counts, st.sampled_from(periods), slots))


CALLS = calls(st.one_of(st.integers(-(10**6), 10**7), st.integers(-(10**9), 10**10), st.integers(-(10**12), 10**13)))
RULES = st.lists(limits(), min_size=1, max_size=3).map(lambda rules: [(rule, rule.words()) for rule in rules])


@settings(max_examples=120)
@given(traffic=CALLS, rules=RULES)
def test_every_field_of_every_reply_is_the_models(server, traffic, rules):
    check_traffic(server.client, COMMAND, Sliding(), traffic, rules)


ONE_PERIOD = [SlidingLimit(7, 1000, slots) for slots in (0, 3, 8)] + [SlidingLimit(9, 2500)]


@settings(max_examples=80)
@given(traffic=calls(st.integers(-300_000, 900_000), most=60))
def test_changing_the_mode_under_busy_traffic_is_the_models(server, traffic):
    check_traffic(server.client, COMMAND, Sliding(), traffic, [(rule, rule.words()) for rule in ONE_PERIOD])


@settings(max_examples=12)
@given(traffic=CALLS, rules=RULES)
def test_the_model_holds_in_every_topology(db, traffic, rules):
    check_traffic(db.node("k"), COMMAND, Sliding(), traffic, rules)


@pytest.mark.parametrize("mode", [[], ["SLOTS", 3]], ids=["exact", "slots"])
def test_what_is_used_is_bounded(server, mode):
    call = [COMMAND, "k", "1/d", *mode, "COST", 10**12, "FORCE"]
    for _ in range(1000):
        server.run(*call)
    with pytest.raises(redis.ResponseError, match="would go above 1000000000000000 units"):
        server.run(*call)
    assert server.state("k")["used"] == 10**15


# ---- copies, forgeries, errors

LIVELY = [["5/h"], ["100/d"], ["100/d", "SLOTS", 7], ["7/250h", "SLOTS", 2], ["300000000/d", "SLOTS", 100], ["20/d"]]


@pytest.mark.parametrize("clock", ["frozen", "real"])
@pytest.mark.parametrize("seed", range(2))
def test_copies_are_equal_after_any_traffic(db, clock, seed):
    if clock == "real":
        db.clock.release()
    mix(db, COMMAND, LIVELY, seed, step_us=600_000_000)


@pytest.mark.topologies("aof")
@pytest.mark.parametrize("preamble", ["yes", "no"])
def test_a_rewritten_log_is_equal(db, preamble):
    mix(db, COMMAND, LIVELY, 5, step_us=600_000_000, calls=300)
    check_rewritten_log(db, preamble)


@pytest.mark.parametrize("clock", ["frozen", "real"])
def test_dumps_and_copies_are_equal(server, clock):
    if clock == "real":
        server.clock.release()
    mix(server, COMMAND, LIVELY, 6, step_us=60_000_000, calls=400)
    check_dumps_and_copies(server)


@pytest.mark.topologies("aof", "replica")
def test_a_long_log_is_equal_in_its_copies(db):
    random = Random(4)
    pipeline = db.node("k").pipeline(transaction=False)
    for n in range(3000):
        pipeline.execute_command("RL.DEBUG", "CLOCK", START_US + (n * 2000 + random.randrange(2000)) * 1000)
        pipeline.execute_command(COMMAND, "k", "1000/h", *random.choice([[], ["COST", 3], ["REFUND", 2]]))
    pipeline.execute()
    assert db.state("k")["used"] > 500


def test_a_copy_goes_its_own_way(server):
    for _ in range(20):
        server.clock.advance(ms=10)
        take(server, "k", "100/m", "COST", 2)
    before = server.state("k"), server.run("DEBUG", "DIGEST-VALUE", "k")
    server.run("COPY", "k", "copy")
    server.clock.advance(ms=10)
    take(server, "copy", "100/m", "SLOTS", 4, "COST", 9)
    server.run("DEL", "copy")
    server.clock.back(ms=10)
    assert (server.state("k"), server.run("DEBUG", "DIGEST-VALUE", "k")) == before


@pytest.mark.parametrize("seed", range(2))
def test_a_forged_payload_is_an_error_or_a_value_that_works(server, seed):
    for n in range(40):
        server.clock.advance(ms=n * 7)
        for key, words in [("log", ["100/m"]), ("slots", ["100/m", "SLOTS", 5]), ("kept", ["9/h", "KEEP", "1h"])]:
            take(server, key, *words, "COST", 1 + n % 3, "UPTO")
    used = [
        [COMMAND, "k", "10/m", "PEEK"],
        [COMMAND, "k", "7/250ms", "COST", 2, "FORCE", "KEEP", "1s"],
        [COMMAND, "k", "10/h", "SLOTS", 3, "COST", 1, "FORCE"],
        [COMMAND, "k", "10/h", "REFUND", 1],
    ]
    check_forged(server, [], used, seed)


def table():
    yield from wrong_everywhere(COMMAND, "10/s")
    yield from (([COMMAND, "k", rate], "ERR", what) for rate, what in WRONG_RATES)
    for n in ("0", "1", "1025", "-2", "x", "", "9223372036854775808", "2.5"):
        yield [COMMAND, "k", "10/s", "SLOTS", n], "ERR", ("SLOTS", "from 2 to 1024")
    yield [COMMAND, "k", "10/s", "SLOTS"], "ERR", "SLOTS"
    yield [COMMAND, "k", "10/s", "SLOTS", "2", "SLOTS", "2"], "ERR", ("SLOTS", "twice")
    yield [COMMAND, "k", "10/s", "EXACT", "EXACT"], "ERR", ("EXACT", "twice")
    yield [COMMAND, "k", "10/s", "EXACT", "SLOTS", "8"], "ERR", ("EXACT", "SLOTS")
    yield [COMMAND, "k", "10/s", "SLOTS", "8", "EXACT"], "ERR", ("EXACT", "SLOTS")
    for words in (["65537/s"], ["65537/s", "EXACT"], ["1000000000000/d"], ["65537/s", "COST", "1", "PEEK"]):
        yield [COMMAND, "k", *words], "ERR", ("65536", "use SLOTS")
    for word in ("ALIGN", "BURST", "TZ"):
        yield [COMMAND, "k", "10/s", word, "2"], "ERR", ("option", "EXACT", "SLOTS", "KEEP")


@pytest.mark.parametrize("call, prefix, needles", table(), ids=map(label, table()))
def test_an_error_names_the_argument_and_changes_nothing(server, call, prefix, needles):
    take(server, "sliding", "10/h", "COST", 3)
    server.run("RL.TOKENBUCKET", "other", "10/h")
    server.run("SET", "string", "x")
    check_refused(server, call, prefix, needles)
