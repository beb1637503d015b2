"""RL.FIXED: a counter for a window that opens with its first grant, or stands on the clock with ALIGN."""

import pytest
import redis
from harness import START_US
from hypothesis import given, settings
from hypothesis import strategies as st
from model import UNIT_MS
from models_windows import Fixed, FixedLimit
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

COMMAND = "RL.FIXED"
MINUTE = 60_000


def take(db, key, rate, *options):
    return db.run(COMMAND, key, rate, *options)


@pytest.fixture
def on_the_minute(db):
    """Ten seconds after a whole minute."""
    db.clock.freeze((START_US // 1000 // MINUTE * MINUTE + 10_000) * 1000)
    return db


# ---- by example


def test_a_first_session(db):
    assert [take(db, "user:42", "3/m") for _ in range(4)] == [
        [1, 3, 2, 0, 60000],
        [1, 3, 1, 0, 60000],
        [1, 3, 0, 0, 60000],
        [0, 3, 0, 60000, 60000],
    ]


def test_a_window_opens_with_its_first_grant(db):
    take(db, "k", "3/m")
    db.clock.advance(ms=59_999)
    assert take(db, "k", "3/m", "COST", 2) == [2, 3, 0, 0, 1]
    assert take(db, "k", "3/m") == [0, 3, 0, 1, 1]
    db.clock.advance(ms=1)
    assert take(db, "k", "3/m", "COST", 3) == [3, 3, 0, 0, 60000]


def test_a_refused_or_peeked_call_opens_no_window(db):
    assert take(db, "k", "3/m", "COST", 4) == [0, 3, 3, -1, 0]
    assert take(db, "k", "3/m", "PEEK") == [1, 3, 3, 0, 0]
    assert db.state("k") is None


def test_an_aligned_window_begins_at_a_multiple_of_the_period(on_the_minute):
    db = on_the_minute
    assert take(db, "k", "3/m", "ALIGN", "COST", 3) == [3, 3, 0, 0, 50_000]
    assert take(db, "k", "3/m", "ALIGN") == [0, 3, 0, 50_000, 50_000]
    db.clock.advance(ms=49_999)
    assert take(db, "k", "3/m", "ALIGN") == [0, 3, 0, 1, 1]
    db.clock.advance(ms=1)
    assert take(db, "k", "3/m", "ALIGN") == [1, 3, 2, 0, 60_000]


@pytest.mark.parametrize("period, ms", [("7s", 7000), ("250ms", 250), ("w", 604_800_000), ("90m", 5_400_000)])
def test_alignment_is_since_the_epoch_whatever_the_period(db, period, ms):
    left = ms - START_US // 1000 % ms
    assert take(db, "k", f"3/{period}", "ALIGN") == [1, 3, 2, 0, left]


def test_a_peek_answers_and_changes_nothing(db):
    take(db, "k", "5/m", "COST", 3)
    db.clock.advance(ms=1000)
    before = db.state("k")
    assert take(db, "k", "5/m", "COST", 3, "PEEK") == [0, 5, 2, 59_000, 59_000]
    assert take(db, "k", "5/m", "COST", 3, "PEEK", "UPTO") == [2, 5, 2, 0, 59_000]
    assert db.state("k") == before


def test_upto_grants_what_fits(db):
    assert take(db, "k", "10/m", "COST", 8) == [8, 10, 2, 0, 60000]
    assert take(db, "k", "10/m", "COST", 8, "UPTO") == [2, 10, 0, 0, 60000]
    assert take(db, "k", "10/m", "COST", 8, "UPTO") == [0, 10, 0, 60000, 60000]


def test_debt_ends_with_its_window(db):
    assert take(db, "k", "10/m", "COST", 25, "FORCE") == [25, 10, -15, 0, 60000]
    assert take(db, "k", "10/m") == [0, 10, -15, 60000, 60000]
    db.clock.advance(ms=60_000)
    assert take(db, "k", "10/m", "COST", 10) == [10, 10, 0, 0, 60000]


def test_a_refund_gives_back_what_is_used(db):
    take(db, "k", "10/m", "COST", 5)
    assert take(db, "k", "10/m", "REFUND", 2) == [2, 10, 7, 0, 60000]
    assert take(db, "k", "10/m", "REFUND", 9) == [3, 10, 10, 0, 0]
    assert take(db, "missing", "10/m", "REFUND", 9) == [0, 10, 10, 0, 0]
    assert db.run("EXISTS", "missing") == 0


def test_a_window_refunded_to_zero_closes(db):
    take(db, "k", "10/m", "COST", 5)
    db.clock.advance(ms=30_000)
    take(db, "k", "10/m", "REFUND", 5)
    assert db.run("EXISTS", "k") == 0
    assert take(db, "k", "10/m") == [1, 10, 9, 0, 60000]


def test_an_aligned_window_stays_where_it_is(on_the_minute):
    db = on_the_minute
    take(db, "k", "10/m", "ALIGN", "COST", 5)
    take(db, "k", "10/m", "ALIGN", "REFUND", 5)
    db.clock.advance(ms=20_000)
    assert take(db, "k", "10/m", "ALIGN") == [1, 10, 9, 0, 30_000]


def test_a_refund_is_for_the_current_window_only(db):
    take(db, "k", "10/m", "COST", 5)
    db.clock.advance(ms=60_000)
    assert take(db, "k", "10/m", "REFUND", 5) == [0, 10, 10, 0, 0]


def test_keep_outlives_the_window(db):
    take(db, "k", "10/s", "COST", 4, "KEEP", "1h")
    take(db, "k", "10/s", "REFUND", 1, "KEEP", "1h")
    db.clock.advance(ms=3_599_999)
    state = db.state("k")
    assert (state["granted"], state["last_ms"], state["used"]) == (3, START_US // 1000, 0)
    db.clock.advance(ms=1)
    assert db.state("k") is None


def test_the_state_tells_everything(on_the_minute):
    db = on_the_minute
    take(db, "k", "10/60s", "ALIGN", "COST", 4)
    assert db.state("k", "COST", 7) == {
        "kind": "fixed",
        "rule": "10/m ALIGN",
        "limit": 10,
        "remaining": 6,
        "used": 4,
        "wait_ms": 50_000,
        "reset_ms": 50_000,
    }
    assert db.run("TYPE", "k") == "rl-fixwin"


# ---- changed parameters


def test_a_raised_limit_gives_the_difference_at_once(db):
    take(db, "k", "10/m", "COST", 10)
    assert take(db, "k", "15/m", "COST", 5) == [5, 15, 0, 0, 60000]


def test_a_lowered_limit_leaves_a_debt(db):
    take(db, "k", "10/m", "COST", 10)
    assert take(db, "k", "4/m") == [0, 4, -6, 60000, 60000]


def test_a_longer_period_counts_from_the_first_grant(db):
    take(db, "k", "10/m", "COST", 10)
    db.clock.advance(ms=30_000)
    assert take(db, "k", "10/h") == [0, 10, 0, 3_570_000, 3_570_000]


def test_a_shorter_period_keeps_what_is_used_as_of_the_last_grant(db):
    take(db, "k", "10/m", "COST", 5)
    db.clock.advance(ms=30_000)
    take(db, "k", "10/m", "COST", 5)
    db.clock.advance(ms=5000)
    assert take(db, "k", "10/10s") == [0, 10, 0, 5000, 5000]


def test_align_can_be_turned_on_and_off(on_the_minute):
    db = on_the_minute
    take(db, "k", "10/m", "COST", 10)
    assert take(db, "k", "10/m", "ALIGN") == [0, 10, 0, 50_000, 50_000]
    take(db, "k", "12/m", "ALIGN", "COST", 2)
    assert take(db, "k", "12/m") == [0, 12, 0, 50_000, 50_000]


def test_flapping_parameters_grant_nothing_extra(db):
    rates = [["10/m"], ["10/h", "ALIGN"], ["10/250s"], ["10/d"], ["10/h"]]
    assert sum(take(db, "k", *rate)[0] for rate in rates * 10) == 10


# ---- a clock that steps back


def test_a_window_ahead_of_the_clock_begins_now(db):
    take(db, "k", "10/m", "COST", 10)
    db.clock.back(ms=86_400_000)
    assert take(db, "k", "10/m") == [0, 10, 0, 60_000, 60_000]
    db.clock.advance(ms=59_999)  # counted from the refused call, which moved the window
    assert take(db, "k", "10/m") == [0, 10, 0, 1, 1]
    db.clock.advance(ms=1)
    assert take(db, "k", "10/m")[0] == 1


def test_an_aligned_window_at_most_one_period_ahead_stays_current(on_the_minute):
    db = on_the_minute
    take(db, "k", "10/m", "ALIGN", "COST", 10)
    db.clock.back(ms=30_000)  # 20 s before the window begins
    assert take(db, "k", "10/m", "ALIGN") == [0, 10, 0, 80_000, 80_000]
    db.clock.back(ms=40_000)  # 60 s before
    assert take(db, "k", "10/m", "ALIGN") == [0, 10, 0, 120_000, 120_000]
    db.clock.back(ms=1)
    assert take(db, "k", "10/m", "ALIGN") == [0, 10, 0, 1, 1], "the one that ends now, in place of one too far ahead"


def test_a_step_back_is_repaired_before_the_parameters_change(db):
    """Else the answer would depend on whether somebody was refused before."""
    db.clock.freeze(125_000_000)
    take(db, "k", "1/m")
    db.clock.freeze(70_000_000)
    assert take(db, "k", "1/m", "ALIGN", "PEEK") == [0, 1, 0, 50_000, 50_000]
    assert take(db, "k", "1/m", "ALIGN") == [0, 1, 0, 50_000, 50_000]
    assert take(db, "k", "1/m", "ALIGN") == [0, 1, 0, 50_000, 50_000]


# ---- kinds on one key


@pytest.mark.parametrize("other", ["RL.TOKENBUCKET k 5/m", "RL.SLIDING k 5/m", "RL.QUOTA k 5/day"])
def test_another_kind_on_a_live_key_is_an_error(db, other):
    other = other.split()
    take(db, "k", "5/m", "COST", 5)
    for words in ([], ["PEEK"], ["REFUND", 1]):
        with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
            db.run(*other, *words)
    db.clock.advance(ms=60_000)
    assert db.run(*other)[:3] == [1, 5, 4], "what has outlived itself is absent"
    with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
        take(db, "k", "5/m")


def test_what_is_kept_for_its_totals_is_still_of_its_kind(db):
    take(db, "k", "5/s", "KEEP", "1h")
    db.clock.advance(ms=5000)
    with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
        db.run("RL.SLIDING", "k", "5/m")


# ---- against the model


def limits():
    periods = [n * ms for ms in UNIT_MS.values() for n in (1, 2, 7)] + [250, 999, 1_800_000, 366 * 86_400_000]
    counts = st.one_of(st.integers(1, 20), st.integers(1, 10**12))
    return st.builds(FixedLimit, counts, st.sampled_from(periods), st.booleans())


CALLS = calls(st.one_of(st.integers(-(10**8), 10**8), st.integers(-(10**12), 10**13)))
RULES = st.lists(limits(), min_size=1, max_size=3).map(lambda rules: [(rule, rule.words()) for rule in rules])


@settings(max_examples=200)
@given(traffic=CALLS, rules=RULES)
def test_every_field_of_every_reply_is_the_models(server, traffic, rules):
    check_traffic(server.client, COMMAND, Fixed(), traffic, rules)


@settings(max_examples=12)
@given(traffic=CALLS, rules=RULES)
def test_the_model_holds_in_every_topology(db, traffic, rules):
    check_traffic(db.node("k"), COMMAND, Fixed(), traffic, rules)


def test_what_is_used_is_bounded(server):
    call = [COMMAND, "k", "1/d", "COST", 10**12, "FORCE"]
    for _ in range(1000):
        server.run(*call)
    with pytest.raises(redis.ResponseError, match="would go above 1000000000000000 units"):
        server.run(*call)
    assert server.state("k")["used"] == 10**15


# ---- copies, forgeries, errors

LIVELY = [["5/h"], ["100/d", "ALIGN"], ["7/250h"], ["300000000/d"], ["9/h", "ALIGN"]]


@pytest.mark.parametrize("clock", ["frozen", "real"])
@pytest.mark.parametrize("seed", range(2))
def test_copies_are_equal_after_any_traffic(db, clock, seed):
    if clock == "real":
        db.clock.release()
    mix(db, COMMAND, LIVELY, seed, step_us=600_000_000)


@pytest.mark.topologies("aof")
@pytest.mark.parametrize("preamble", ["yes", "no"])
def test_a_rewritten_log_is_equal(db, preamble):
    mix(db, COMMAND, LIVELY, 5, step_us=600_000_000)
    check_rewritten_log(db, preamble)


@pytest.mark.parametrize("clock", ["frozen", "real"])
def test_dumps_and_copies_are_equal(server, clock):
    if clock == "real":
        server.clock.release()
    mix(server, COMMAND, LIVELY, 6, step_us=600_000_000)
    check_dumps_and_copies(server)


@pytest.mark.parametrize("seed", range(2))
def test_a_forged_payload_is_an_error_or_a_value_that_works(server, seed):
    made = [[COMMAND, "plain", "10/m", "COST", 4], [COMMAND, "kept", "999999999989/366d", "ALIGN", "KEEP", "1h"]]
    used = [
        [COMMAND, "k", "10/m", "PEEK"],
        [COMMAND, "k", "7/250ms", "COST", 2, "FORCE", "KEEP", "1s"],
        [COMMAND, "k", "10/h", "ALIGN", "REFUND", 1],
    ]
    check_forged(server, made, used, seed)


def table():
    yield from wrong_everywhere(COMMAND, "10/s")
    yield from (([COMMAND, "k", rate], "ERR", what) for rate, what in WRONG_RATES)
    yield [COMMAND, "k", "10/s", "ALIGN", "ALIGN"], "ERR", ("ALIGN", "twice")
    for word in ("SLOTS", "BURST", "TZ", "EXACT"):
        yield [COMMAND, "k", "10/s", word, "2"], "ERR", ("option", "ALIGN", "KEEP")
    yield [COMMAND, "fixed", "10/s", "ALIGN", "1"], "ERR", "option"


@pytest.mark.parametrize("call, prefix, needles", table(), ids=map(label, table()))
def test_an_error_names_the_argument_and_changes_nothing(server, call, prefix, needles):
    server.run(COMMAND, "fixed", "10/h", "COST", 3)
    server.run("RL.TOKENBUCKET", "other", "10/h")
    server.run("SET", "string", "x")
    check_refused(server, call, prefix, needles)
