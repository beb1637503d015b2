"""RL.HISTORY: the past periods of a quota, newest first, idle ones as zero."""

from datetime import datetime, timezone
from zoneinfo import ZoneInfo

import pytest
import redis
from harness import pairs
from hypothesis import given, settings
from hypothesis import strategies as st
from models_windows import Quota, QuotaLimit
from windows import calls, check_refused, concrete, label

COMMAND = "RL.QUOTA"
HOUR = 3_600_000
DAY = 24 * HOUR
UTC = timezone.utc


def ms(*when, zone=UTC):
    return round(datetime(*when, tzinfo=zone).timestamp() * 1000)


def take(db, when, *words, zone=UTC):
    db.clock.freeze(ms(*when, zone=zone) * 1000)
    return db.run(COMMAND, "k", *words)


def history(db, *options):
    return db.run("RL.HISTORY", "k", *options)


# ---- by example


def test_past_periods_newest_first(db):
    for day, cost in [(1, 3), (2, 7), (3, 2)]:
        take(db, (2024, 5, day, 12), "10/day", "HISTORY", 5, "COST", cost)
    assert history(db) == [[ms(2024, 5, 2), 7, 10], [ms(2024, 5, 1), 3, 10]]


def test_a_period_is_past_when_it_is_over(db):
    take(db, (2024, 5, 1, 12), "10/day", "HISTORY", 5, "COST", 3)
    assert history(db) == []
    db.clock.freeze((ms(2024, 5, 2) - 1) * 1000)
    assert history(db) == []
    db.clock.freeze(ms(2024, 5, 2) * 1000)
    assert history(db) == [[ms(2024, 5, 1), 3, 10]]


def test_idle_periods_are_zero(db):
    take(db, (2024, 5, 1, 12), "10/day", "HISTORY", 5, "COST", 3)
    take(db, (2024, 5, 4, 12), "12/day", "HISTORY", 5, "COST", 1)
    assert history(db) == [[ms(2024, 5, 3), 0, 10], [ms(2024, 5, 2), 0, 10], [ms(2024, 5, 1), 3, 10]]
    db.clock.freeze(ms(2024, 5, 6) * 1000)
    assert history(db)[:3] == [[ms(2024, 5, 5), 0, 12], [ms(2024, 5, 4), 1, 12], [ms(2024, 5, 3), 0, 10]]


def test_only_so_many_are_kept(db):
    for day in range(1, 12):
        take(db, (2024, 5, day), "10/day", "HISTORY", 3, "COST", day % 10 + 1)
    assert [used for _, used, _ in history(db)] == [1, 10, 9]
    take(db, (2024, 5, 20), "10/day", "HISTORY", 3)
    assert history(db) == [], "all that would be listed are idle"


def test_count_lists_less(db):
    for day in range(1, 8):
        take(db, (2024, 5, day), "10/day", "HISTORY", 366, "COST", day)
    assert [used for _, used, _ in history(db, "COUNT", 2)] == [6, 5]
    assert [used for _, used, _ in history(db, "count", 366)] == [6, 5, 4, 3, 2, 1]


def test_a_row_tells_the_limit_of_its_time(db):
    take(db, (2024, 5, 1), "10/day", "HISTORY", 5, "COST", 3)
    take(db, (2024, 5, 1), "20/day", "HISTORY", 5, "COST", 3)
    take(db, (2024, 5, 2), "5/day", "HISTORY", 5, "COST", 9, "FORCE")
    take(db, (2024, 5, 3), "7/day", "HISTORY", 5)
    assert history(db) == [[ms(2024, 5, 2), 9, 5], [ms(2024, 5, 1), 6, 20]]


def test_refunds_are_taken_off(db):
    take(db, (2024, 5, 1), "10/day", "HISTORY", 5, "COST", 6)
    take(db, (2024, 5, 1), "10/day", "HISTORY", 5, "REFUND", 2)
    take(db, (2024, 5, 2), "10/day", "HISTORY", 5, "COST", 6)
    take(db, (2024, 5, 2), "10/day", "HISTORY", 5, "REFUND", 6)
    take(db, (2024, 5, 3), "10/day", "HISTORY", 5)
    assert history(db) == [[ms(2024, 5, 2), 0, 10], [ms(2024, 5, 1), 4, 10]]


def test_without_history_nothing_is_kept(db):
    take(db, (2024, 5, 1), "10/day")
    take(db, (2024, 5, 2), "10/day")
    assert history(db) == []


def test_a_missing_key_has_no_past(db):
    assert history(db) == []


def test_the_key_is_kept_for_its_history(db):
    take(db, (2024, 5, 1, 12), "10/day", "HISTORY", 3, "COST", 4)
    db.clock.freeze((ms(2024, 5, 5) - 1) * 1000)
    assert history(db) == [[ms(2024, 5, 3), 0, 10], [ms(2024, 5, 2), 0, 10], [ms(2024, 5, 1), 4, 10]]
    assert (db.state("k")["used"], db.state("k")["reset_ms"]) == (0, 0)
    db.clock.freeze(ms(2024, 5, 5) * 1000)
    assert history(db) == []
    with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
        db.clock.freeze((ms(2024, 5, 4)) * 1000)
        db.run("RL.FIXED", "k", "5/d")


def test_the_expiry_lasts_for_the_history(server):
    server.clock.release()
    server.run(COMMAND, "k", "10/day", "HISTORY", 30)
    server.run(COMMAND, "plain", "10/day")
    assert 30 * DAY < server.run("PTTL", "k") < 36 * DAY
    assert 0 < server.run("PTTL", "plain") <= DAY


def test_a_key_kept_too_long_for_another_calendar_is_gone_at_last(db):
    take(db, (2024, 5, 1), "10/hour", "HISTORY", 2)
    db.clock.freeze(ms(2024, 6, 1) * 1000)
    assert db.state("k") is None
    assert db.run("RL.FIXED", "k", "5/d")[0] == 1


def test_days_of_a_zone_with_daylight_saving(db):
    zone = ZoneInfo("America/New_York")
    words = ["10/day", "TZ", "America/New_York", "HISTORY", 9]
    take(db, (2024, 3, 9, 12), *words, "COST", 2, zone=zone)
    take(db, (2024, 3, 12, 12), *words, zone=zone)
    days = [ms(2024, 3, day, zone=zone) for day in (11, 10, 9)]
    assert history(db) == [[days[0], 0, 10], [days[1], 0, 10], [days[2], 2, 10]]
    assert days[0] - days[1] == 23 * HOUR


def test_the_hour_that_happens_twice_is_listed_twice(db):
    zone = ["TZ", "America/New_York"]
    for hour in (4, 5, 6, 7):
        take(db, (2024, 11, 3, hour, 30), "10/hour", *zone, "HISTORY", 9, "COST", hour)
    assert history(db) == [[ms(2024, 11, 3, hour), hour, 10] for hour in (6, 5, 4)]


@pytest.mark.parametrize(
    "unit, anchor, starts",
    [
        ("week", [], [(2024, 4, 22), (2024, 4, 15)]),
        ("month", [], [(2024, 4, 1), (2024, 3, 1), (2024, 2, 1)]),
        ("month", ["ANCHOR", 31], [(2024, 3, 31), (2024, 2, 29), (2024, 1, 31)]),
        ("year", [], [(2023, 1, 1)]),
    ],
    ids=str,
)
def test_longer_periods(db, unit, anchor, starts):
    words = [f"10/{unit}", *anchor, "HISTORY", 9]
    take(db, (*starts[-1], 1), *words, "COST", 4)
    take(db, (2024, 5, 3), *words)
    rows = [[ms(*start), 0, 10] for start in starts]
    rows[-1][1] = 4
    assert history(db) == rows


def test_a_year_of_days(db):
    for n in range(370):
        db.clock.freeze((ms(2023, 1, 1) + n * DAY) * 1000)
        db.run(COMMAND, "k", "1000/day", "HISTORY", 366, "COST", n + 1)
    assert history(db) == [[ms(2023, 1, 1) + n * DAY, n + 1, 1000] for n in range(368, 2, -1)]


def test_what_was_recorded_survives_another_calendar(db):
    take(db, (2024, 5, 1, 12), "10/day", "HISTORY", 9, "COST", 4)
    take(db, (2024, 5, 2, 12), "10/day", "HISTORY", 9, "COST", 5)
    take(db, (2024, 5, 2, 13), "10/month", "HISTORY", 9)
    assert db.state("k")["used"] == 6
    assert [row[1:] for row in history(db)] == [[4, 10]]


@pytest.mark.topologies("replica")
def test_a_replica_lists_it_too(db):
    for day in range(1, 6):
        take(db, (2024, 5, day), "10/day", "HISTORY", 9, "COST", day)
    assert db.node("k").wait(1, 10_000) == 1
    theirs = db.replica.execute_command("RL.HISTORY", "k")
    assert [used for _, used, _ in theirs if used] in ([5, 4, 3, 2, 1], []), "by its own clock, which is years ahead"


def test_a_user_who_may_only_read_may_ask(server):
    server.run("ACL", "SETUSER", "reader", "on", "nopass", "%R~*", "+rl.history")
    take(server, (2024, 5, 1), "10/day", "HISTORY", 9)
    server.clock.advance(ms=DAY)
    reader = server.connect(username="reader", password="")
    assert reader.execute_command("RL.HISTORY", "k") == [[ms(2024, 5, 1), 1, 10]]
    server.run("ACL", "DELUSER", "reader")


# ---- against the model


def stripped(rows):
    """Without idle periods at the end: how long a server remembers that there was something before them is its own."""
    while rows and rows[-1][1] == 0:
        rows = rows[:-1]
    return rows


@settings(max_examples=200)
@given(
    traffic=calls(st.one_of(st.integers(0, 2 * DAY * 1000), st.integers(-2 * DAY * 1000, 9 * DAY * 1000))),
    unit=st.sampled_from(["hour", "day", "week", "month"]),
    zone=st.sampled_from(["UTC", "+05:45", "America/New_York", "Australia/Lord_Howe"]),
    counts=st.lists(st.integers(0, 20), min_size=1, max_size=3),
    kept=st.sampled_from([1, 2, 5, 366]),
)
def test_every_row_is_the_models(server, traffic, unit, zone, counts, kept):
    rules = [QuotaLimit(n, unit, zone, history=kept) for n in counts]
    model, pipeline, expected = Quota(), server.client.pipeline(transaction=False), []
    pipeline.execute_command("DEL", "k")
    for now_us, words, answer, cost, state in concrete(model, traffic, [(rule, rule.words()) for rule in rules]):
        expected.append((answer, state, model.history(now_us)))
        pipeline.execute_command("RL.DEBUG", "CLOCK", now_us)
        pipeline.execute_command(COMMAND, "k", *words)
        pipeline.execute_command("RL.STATE", "k", "COST", cost)
        pipeline.execute_command("RL.HISTORY", "k")
    replies = pipeline.execute(raise_on_error=False)[1:]
    for n, (answer, state, rows) in enumerate(expected):
        _, reply, flat, listed = replies[4 * n : 4 * n + 4]
        assert isinstance(reply, Exception) or reply == answer
        assert len(listed) <= kept
        assert stripped(listed) == stripped(rows)
        if flat is None:
            assert state is None or (state["used"], stripped(rows)) == (0, [])
        else:
            assert pairs(flat) == state


# ---- errors


def table():
    for n in ("0", "367", "-1", "x", "", "1.5", "9223372036854775808"):
        yield ["RL.HISTORY", "k", "COUNT", n], "ERR", ("COUNT", "from 1 to 366")
    yield ["RL.HISTORY", "k", "COUNT"], "ERR", "COUNT"
    yield ["RL.HISTORY", "k", "COUNT", "1", "COUNT", "1"], "ERR", ("COUNT", "twice")
    yield ["RL.HISTORY", "k", "BOGUS"], "ERR", ("option", "COUNT")
    yield ["RL.HISTORY"], "ERR", "wrong number of arguments"
    for key in ("string", "bucket", "window", "fixed"):
        yield ["RL.HISTORY", key], "WRONGTYPE", "wrong kind of value"


@pytest.mark.parametrize("call, prefix, needles", table(), ids=map(label, table()))
def test_an_error_names_the_argument_and_changes_nothing(server, call, prefix, needles):
    server.run(COMMAND, "k", "10/day", "HISTORY", 3)
    server.run("RL.TOKENBUCKET", "bucket", "10/h")
    server.run("RL.SLIDING", "window", "10/h")
    server.run("RL.FIXED", "fixed", "10/h")
    server.run("SET", "string", "x")
    check_refused(server, call, prefix, needles)
