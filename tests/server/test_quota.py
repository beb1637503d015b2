"""RL.QUOTA: a budget per calendar period, told when it runs low. Its past is in test_history.py."""

import json
import os
import subprocess
from datetime import datetime, timezone
from itertools import count
from zoneinfo import ZoneInfo

import harness
import pytest
import redis
from harness import START_US, until
from hypothesis import given, settings
from hypothesis import strategies as st
from models_windows import Quota, QuotaLimit
from windows import (
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

COMMAND = "RL.QUOTA"
HOUR = 3_600_000
DAY = 24 * HOUR
CHANNEL = "rl:alerts"
UTC = timezone.utc


def ms(*when, zone=UTC):
    """The instant at which the clocks of a zone show this; the first of two."""
    return round(datetime(*when, tzinfo=zone).timestamp() * 1000)


def at(db, *when, zone=UTC, plus_ms=0):
    db.clock.freeze((ms(*when, zone=zone) + plus_ms) * 1000)


def take(db, key, quota, *options):
    return db.run(COMMAND, key, quota, *options)


def period(db, key):
    state = db.state(key)
    return state["period_start_ms"], state["period_end_ms"]


# ---- by example


def test_a_first_session(db):
    at(db, 2024, 5, 17, 18, 30)
    assert take(db, "org:7", "3/day") == [1, 3, 2, 0, 5 * HOUR + HOUR // 2]
    assert take(db, "org:7", "3/day", "COST", 2) == [2, 3, 0, 0, 5 * HOUR + HOUR // 2]
    assert take(db, "org:7", "3/day") == [0, 3, 0, 5 * HOUR + HOUR // 2, 5 * HOUR + HOUR // 2]
    at(db, 2024, 5, 17, 23, 59, 59, plus_ms=999)
    assert take(db, "org:7", "3/day") == [0, 3, 0, 1, 1]
    at(db, 2024, 5, 18)
    assert take(db, "org:7", "3/day") == [1, 3, 2, 0, DAY]


PERIODS = [  # when it is 2024-05-17 18:30 UTC, a Friday
    (["1/hour"], (2024, 5, 17, 18), (2024, 5, 17, 19)),
    (["1/day"], (2024, 5, 17), (2024, 5, 18)),
    (["1/week"], (2024, 5, 13), (2024, 5, 20)),
    (["1/month"], (2024, 5, 1), (2024, 6, 1)),
    (["1/year"], (2024, 1, 1), (2025, 1, 1)),
    (["1/DAY", "tz", "utc"], (2024, 5, 17), (2024, 5, 18)),
    (["1/day", "TZ", "Z"], (2024, 5, 17), (2024, 5, 18)),
    (["1/day", "TZ", "-03:00"], (2024, 5, 17, 3), (2024, 5, 18, 3)),
    (["1/day", "TZ", "+05:45"], (2024, 5, 17, 18, 15), (2024, 5, 18, 18, 15)),
    (["1/hour", "TZ", "+05:45"], (2024, 5, 17, 18, 15), (2024, 5, 17, 19, 15)),
    (["1/day", "TZ", "America/Sao_Paulo"], (2024, 5, 17, 3), (2024, 5, 18, 3)),
    (["1/day", "TZ", "Asia/Kathmandu"], (2024, 5, 17, 18, 15), (2024, 5, 18, 18, 15)),
    (["1/month", "TZ", "Europe/London"], (2024, 4, 30, 23), (2024, 5, 31, 23)),
    (["1/year", "TZ", "Europe/London"], (2024, 1, 1), (2025, 1, 1)),
    (["1/week", "ANCHOR", 1], (2024, 5, 13), (2024, 5, 20)),
    (["1/week", "ANCHOR", 5], (2024, 5, 17), (2024, 5, 24)),
    (["1/week", "ANCHOR", 7], (2024, 5, 12), (2024, 5, 19)),
    (["1/month", "ANCHOR", 17], (2024, 5, 17), (2024, 6, 17)),
    (["1/month", "ANCHOR", 18], (2024, 4, 18), (2024, 5, 18)),
    (["1/month", "ANCHOR", 31], (2024, 4, 30), (2024, 5, 31)),
]


@pytest.mark.parametrize("words, start, end", PERIODS, ids=lambda words: " ".join(map(str, words)))
def test_periods_of_the_calendar(server, words, start, end):
    at(server, 2024, 5, 17, 18, 30)
    assert take(server, "k", *words)[4] == ms(*end) - ms(2024, 5, 17, 18, 30)
    assert period(server, "k") == (ms(*start), ms(*end))


@pytest.mark.parametrize(
    "now, start, end",
    [
        ((2023, 2, 27), (2023, 1, 31), (2023, 2, 28)),
        ((2023, 2, 28), (2023, 2, 28), (2023, 3, 31)),
        ((2024, 2, 28), (2024, 1, 31), (2024, 2, 29)),
        ((2024, 2, 29), (2024, 2, 29), (2024, 3, 31)),
        ((2024, 12, 31), (2024, 12, 31), (2025, 1, 31)),
    ],
)
def test_the_thirty_first_is_the_last_day_of_a_shorter_month(server, now, start, end):
    at(server, *now)
    take(server, "k", "1/month", "ANCHOR", 31)
    assert period(server, "k") == (ms(*start), ms(*end))


@pytest.mark.parametrize(
    "zone, day, hours",
    [
        ("America/New_York", (2024, 3, 10), 23),
        ("America/New_York", (2024, 11, 3), 25),
        ("Australia/Lord_Howe", (2024, 4, 7), 24.5),
        ("Australia/Lord_Howe", (2024, 10, 6), 23.5),
        ("America/Sao_Paulo", (2018, 11, 4), 23),  # the midnight was skipped
        ("America/Sao_Paulo", (2018, 2, 17), 25),  # its last hour happened twice
        ("Europe/London", (2024, 7, 1), 24),
    ],
)
def test_days_have_the_hours_that_the_zone_gives_them(server, zone, day, hours):
    at(server, *day, 12, zone=ZoneInfo(zone))
    take(server, "k", "1/day", "TZ", zone)
    start, end = period(server, "k")
    assert end - start == hours * HOUR
    for edge_ms, inside in [(start - 1, False), (start, True), (end - 1, True), (end, False)]:
        server.clock.freeze(edge_ms * 1000)
        server.run("DEL", "k")
        take(server, "k", "1/day", "TZ", zone)
        assert (period(server, "k") == (start, end)) == inside


def test_a_day_that_was_skipped_does_not_exist(server):
    """Samoa went from the 29th to the 31st of December 2011."""
    at(server, 2011, 12, 29, 12, zone=ZoneInfo("Pacific/Apia"))
    take(server, "k", "1/day", "TZ", "Pacific/Apia")
    end = period(server, "k")[1]
    server.clock.freeze(end * 1000)
    take(server, "k", "1/day", "TZ", "Pacific/Apia")
    assert period(server, "k") == (end, ms(2012, 1, 1, zone=ZoneInfo("Pacific/Apia")))
    assert end == ms(2011, 12, 31, zone=ZoneInfo("Pacific/Apia"))


def test_an_hour_that_happens_twice_is_two_periods(db):
    first = ms(2024, 11, 3, 5)  # 01:00 in New York, before the clocks go back
    zone = ["TZ", "America/New_York"]
    db.clock.freeze((first + HOUR // 2) * 1000)
    assert take(db, "k", "1/hour", *zone)[0] == 1
    assert take(db, "k", "1/hour", *zone) == [0, 1, 0, HOUR // 2, HOUR // 2]
    db.clock.freeze((first + HOUR) * 1000)  # 01:00 again
    assert take(db, "k", "1/hour", *zone) == [1, 1, 0, 0, HOUR]
    db.clock.freeze((first + 2 * HOUR) * 1000)
    assert take(db, "k", "1/hour", *zone)[0] == 1


def test_half_an_hour_that_happens_twice(server):
    """Lord Howe goes back from 02:00 to 01:30: the hour of one o'clock is a whole one and a half."""
    zone = ["TZ", "Australia/Lord_Howe"]
    shift = ms(2024, 4, 6, 15)
    for since, start, end in [(-1, -HOUR, 0), (0, 0, HOUR // 2), (HOUR // 2, HOUR // 2, 3 * HOUR // 2)]:
        server.run("DEL", "k")
        server.clock.freeze((shift + since) * 1000)
        take(server, "k", "1/hour", *zone)
        assert period(server, "k") == (shift + start, shift + end)


def test_a_count_of_zero_grants_nothing_without_force(db):
    assert take(db, "k", "0/day") == [0, 0, 0, -1, 0]
    assert take(db, "k", "0/day", "COST", 5, "UPTO") == [0, 0, 0, -1, 0]
    assert db.run("EXISTS", "k") == 0
    assert take(db, "k", "0/day", "COST", 5, "FORCE")[:4] == [5, 0, -5, 0]
    state = db.state("k")
    assert (state["over"], state["percent_used"], state["wait_ms"]) == (5, 100, -1)


def test_overuse_is_told_and_ends_with_its_period(db):
    at(db, 2024, 5, 17, 20)
    assert take(db, "k", "1000/day", "COST", 1500, "FORCE") == [1500, 1000, -500, 0, 4 * HOUR]
    state = db.state("k")
    assert (state["used"], state["remaining"], state["over"], state["percent_used"]) == (1500, -500, 500, 150)
    assert take(db, "k", "1000/day") == [0, 1000, -500, 4 * HOUR, 4 * HOUR]
    at(db, 2024, 5, 18)
    assert db.state("k") is None
    assert take(db, "k", "1000/day", "COST", 1000) == [1000, 1000, 0, 0, DAY]


def test_the_state_tells_everything(db):
    at(db, 2024, 5, 17, 20)
    words = ["ALERT", "95,80", "HISTORY", 3, "ANCHOR", 15, "TZ", "America/Sao_Paulo"]
    take(db, "k", "1000/month", *words, "COST", 337, "KEEP", "1d")
    assert db.state("k", "COST", 664) == {
        "kind": "quota",
        "rule": "1000/month TZ America/Sao_Paulo ANCHOR 15 HISTORY 3 ALERT 80,95",
        "limit": 1000,
        "remaining": 663,
        "used": 337,
        "wait_ms": ms(2024, 6, 15, 3) - ms(2024, 5, 17, 20),
        "reset_ms": ms(2024, 6, 15, 3) - ms(2024, 5, 17, 20),
        "period_start_ms": ms(2024, 5, 15, 3),
        "period_end_ms": ms(2024, 6, 15, 3),
        "percent_used": 33,
        "over": 0,
        "zone": "America/Sao_Paulo",
        "granted": 337,
        "last_ms": ms(2024, 5, 17, 20),
    }
    assert db.run("TYPE", "k") == "rl-quotas"


def test_the_rule_can_be_sent_back(db):
    take(db, "k", "10/month", "TZ", "+05:30", "ANCHOR", 15, "HISTORY", 2, "ALERT", "120,5")
    before = db.state("k")
    assert before["zone"] == "+05:30"
    take(db, "k", *before["rule"].split())
    assert db.state("k") == {**before, "used": 2, "remaining": 8, "percent_used": 20}


def test_upto_and_peek(db):
    at(db, 2024, 5, 17, 20)
    take(db, "k", "10/day", "COST", 8)
    assert take(db, "k", "10/day", "COST", 8, "UPTO", "PEEK") == [2, 10, 2, 0, 4 * HOUR]
    assert take(db, "k", "10/day", "COST", 8, "UPTO") == [2, 10, 0, 0, 4 * HOUR]
    assert take(db, "k", "10/day", "COST", 8, "UPTO") == [0, 10, 0, 4 * HOUR, 4 * HOUR]
    assert take(db, "k", "10/day", "COST", 11) == [0, 10, 0, -1, 4 * HOUR]


def test_a_refund_is_for_the_current_period_only(db):
    at(db, 2024, 5, 17, 20)
    take(db, "k", "10/day", "COST", 8)
    assert take(db, "k", "10/day", "REFUND", 3) == [3, 10, 5, 0, 4 * HOUR]
    at(db, 2024, 5, 18)
    assert take(db, "k", "10/day", "REFUND", 3) == [0, 10, 10, 0, 0]
    take(db, "k", "10/day", "COST", 2)
    assert take(db, "k", "10/day", "REFUND", 3) == [2, 10, 10, 0, 0]
    assert db.run("EXISTS", "k") == 0


# ---- changed parameters


def test_a_changed_count_keeps_what_is_used(db):
    take(db, "k", "10/day", "COST", 10)
    assert take(db, "k", "15/day", "COST", 5)[:3] == [5, 15, 0]
    assert take(db, "k", "4/day")[:3] == [0, 4, -11]


def test_a_wait_under_another_calendar_is_exact(db):
    """A refusal writes nothing, so what was used stays in its own period, whatever calendar is asked for."""
    assert db.run("RL.QUOTA", "k", "5/day", "COST", 5)[0] == 5
    wait_ms = db.run("RL.QUOTA", "k", "5/hour")[3]
    assert db.run("RL.QUOTA", "k", "5/day")[3] == wait_ms
    db.clock.advance(ms=wait_ms - 1)
    assert db.run("RL.QUOTA", "k", "5/hour")[0] == 0
    db.clock.advance(ms=1)
    assert db.run("RL.QUOTA", "k", "5/hour")[0] == 1


@pytest.mark.parametrize(
    "words, end",
    [
        (["10/hour"], (2024, 5, 17, 21)),
        (["10/week"], (2024, 5, 20)),
        (["10/month", "ANCHOR", 20], (2024, 5, 20)),
        (["10/year"], (2025, 1, 1)),
        (["10/day", "TZ", "-03:00"], (2024, 5, 18, 3)),
        (["10/day", "TZ", "Asia/Tokyo"], (2024, 5, 18, 15)),
    ],
    ids=lambda words: " ".join(map(str, words)),
)
def test_another_calendar_moves_what_is_used_into_its_current_period(db, words, end):
    at(db, 2024, 5, 17, 20)
    take(db, "k", "10/day", "COST", 8)
    left = ms(*end) - ms(2024, 5, 17, 20)
    assert take(db, "k", *words) == [1, 10, 1, 0, left]
    assert take(db, "k", *words, "COST", 2) == [0, 10, 1, left, left]
    assert period(db, "k")[1] == ms(*end)
    db.clock.freeze(ms(*end) * 1000)
    assert take(db, "k", *words, "COST", 10)[0] == 10


def test_flapping_parameters_grant_nothing_extra(db):
    at(db, 2024, 5, 17, 20, 30)
    rates = [["10/day"], ["10/hour"], ["10/year", "TZ", "Asia/Tokyo"], ["10/month", "ANCHOR", 31], ["10/week"]]
    assert sum(take(db, "k", *rate)[0] for rate in rates * 10) == 10


# ---- a clock that steps back


def test_a_period_at_most_one_ahead_stays_current(db):
    at(db, 2024, 5, 17, 0, 1)
    take(db, "k", "10/day", "COST", 10)
    at(db, 2024, 5, 16, 23)
    assert take(db, "k", "10/day") == [0, 10, 0, 25 * HOUR, 25 * HOUR]
    at(db, 2024, 5, 16)
    assert take(db, "k", "10/day") == [0, 10, 0, 48 * HOUR, 48 * HOUR]
    assert period(db, "k")[0] == ms(2024, 5, 17)


def test_what_is_further_ahead_moves_to_the_period_of_now(db):
    at(db, 2024, 5, 17, 0, 1)
    take(db, "k", "10/day", "COST", 10)
    at(db, 2024, 5, 15, 23)
    assert take(db, "k", "10/day") == [0, 10, 0, HOUR, HOUR]
    at(db, 2024, 5, 16)
    assert take(db, "k", "10/day", "COST", 10)[0] == 10


# ---- kinds on one key


def test_another_kind_on_a_live_key_is_an_error(db):
    at(db, 2024, 5, 17, 20)
    take(db, "k", "5/day", "COST", 5)
    for other in ("RL.FIXED", "RL.SLIDING", "RL.TOKENBUCKET", "RL.LEAKY"):
        with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
            db.run(other, "k", "5/d")
    at(db, 2024, 5, 18)
    assert db.run("RL.FIXED", "k", "5/d")[0] == 1
    with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
        take(db, "k", "5/day")


# ---- alerts


WORDS = count()


class Subscriber:
    """Hears what a node publishes, up to a word that is sent after it."""

    def __init__(self, node, channel=CHANNEL):
        self.channel = channel
        self.pubsub = node.pubsub()
        self.pubsub.subscribe(channel)
        assert self.pubsub.get_message(timeout=10)["type"] == "subscribe"

    def heard(self, speaker):
        last, messages = f"the last word, {next(WORDS)}", []
        speaker.publish(self.channel, last)
        while True:
            message = self.pubsub.get_message(timeout=10)
            assert message, "the last word was not heard"
            if message["data"] == last:
                return messages
            if not message["data"].startswith("the last word"):  # for another subscriber
                messages.append(message["data"])


@pytest.fixture
def subscribe():
    made = []

    def make(node, *args):
        made.append(Subscriber(node, *args))
        return made[-1]

    yield make
    for subscriber in made:
        subscriber.pubsub.close()


def test_each_threshold_is_told_once(db, subscribe):
    at(db, 2024, 5, 17, 20)
    node = db.node("k")
    subscriber, end = subscribe(node), ms(2024, 5, 18)
    words = ["10/day", "ALERT", "80,50,120"]
    take(db, "k", *words, "COST", 4)
    assert subscriber.heard(node) == []
    take(db, "k", *words)
    half = '{"key":"k","kind":"quota","percent":50,"used":5,"limit":10,"period_end_ms":%d}' % end
    assert subscriber.heard(node) == [half]
    take(db, "k", *words, "COST", 4)
    take(db, "k", *words)
    assert [json.loads(text)["percent"] for text in subscriber.heard(node)] == [80]
    assert take(db, "k", *words)[0] == 0
    take(db, "k", *words, "COST", 2, "FORCE")
    assert [json.loads(text) for text in subscriber.heard(node)] == [
        {"key": "k", "kind": "quota", "percent": 120, "used": 12, "limit": 10, "period_end_ms": end}
    ]


def test_thresholds_reached_at_once_are_told_in_order(db, subscribe):
    node = db.node("k")
    subscriber = subscribe(node)
    take(db, "k", "10/day", "ALERT", "100,10,50", "COST", 10)
    assert [json.loads(text)["percent"] for text in subscriber.heard(node)] == [10, 50, 100]


def test_what_decides_nothing_is_silent(db, subscribe):
    node = db.node("k")
    subscriber = subscribe(node)
    words = ["10/day", "ALERT", "50"]
    take(db, "k", *words, "COST", 4)
    take(db, "k", *words, "COST", 6, "PEEK")
    take(db, "k", *words, "COST", 7)
    take(db, "k", *words, "REFUND", 1)
    assert subscriber.heard(node) == []


@pytest.mark.parametrize("more", [[], ["HISTORY", 3], ["KEEP", "30d"]], ids=str)
def test_a_new_period_speaks_again(db, subscribe, more):
    node = db.node("k")
    subscriber, words = subscribe(node), ["10/day", "ALERT", "50,80", *more]
    for day in (17, 18, 25):
        at(db, 2024, 5, day, 20)
        for cost in (5, 1, 3):
            take(db, "k", *words, "COST", cost)
        told = [json.loads(text) for text in subscriber.heard(node)]
        assert [(each["percent"], each["used"]) for each in told] == [(50, 5), (80, 9)]
        assert {each["period_end_ms"] for each in told} == {ms(2024, 5, day + 1)}


def test_a_refund_below_and_a_second_crossing_are_silent(db, subscribe):
    at(db, 2024, 5, 17, 20)
    node = db.node("k")
    subscriber = subscribe(node)
    words = ["10/day", "ALERT", "50"]
    take(db, "k", *words, "COST", 6)
    assert len(subscriber.heard(node)) == 1
    for units in (3, 6):  # to below, and to nothing used at all
        take(db, "k", *words, "REFUND", units)
        take(db, "k", *words, "COST", units)
    take(db, "k", "100/day", "ALERT", "50")
    take(db, "k", *words)
    assert subscriber.heard(node) == []
    at(db, 2024, 5, 18)
    take(db, "k", *words, "COST", 6)
    assert [json.loads(text)["period_end_ms"] for text in subscriber.heard(node)] == [ms(2024, 5, 19)]


@pytest.mark.parametrize(
    "key, shown",
    [
        (b'say "hi" \\ bye', 'say "hi" \\ bye'),
        ("größe:語:😀".encode(), "größe:語:😀"),
        (b"\xff\xfe", "\\xff\\xfe"),
        (b'a\x00"\n\r\t\a\b\\\x1f\x7f', 'a\\x00\\"\\n\\r\\t\\a\\b\\\\\\x1f\\x7f'),
        (b"\xc3\x28", "\\xc3("),
        (b"\xed\xa0\x80", "\\xed\\xa0\\x80"),
        (b"\xc2\x85x", "\\xc2\\x85x"),
        (b"", ""),
        (bytes(range(128, 256)) * 20, "".join(f"\\x{byte:02x}" for byte in range(128, 256)) * 20),
    ],
    ids=range(9),
)
def test_a_key_that_is_no_text_is_escaped_as_the_client_would(db, subscribe, key, shown):
    node = db.node(key)
    subscriber = subscribe(node)
    take(db, key, "1/day", "ALERT", "100")
    (text,) = subscriber.heard(node)
    assert json.loads(text)["key"] == shown


@pytest.mark.topologies("cluster")
def test_a_subscriber_on_any_node_of_a_cluster_hears_it(db, subscribe):
    subscribers = [subscribe(node) for node in db.nodes]
    keys = [f"user:{n}" for n in range(12)]
    for key in keys:
        take(db, key, "1/day", "ALERT", "100")
    for subscriber in subscribers:
        heard = []
        for node in db.nodes:
            heard += subscriber.heard(node)
        assert sorted(json.loads(text)["key"] for text in heard) == sorted(keys)


@pytest.mark.topologies("replica")
def test_only_the_primary_speaks(db, subscribe):
    subscriber = subscribe(db.replica)
    take(db, "k", "1/day", "ALERT", "100")
    assert subscriber.heard(db.node("k")) == []


@pytest.mark.topologies("replica")
def test_a_replica_raises_no_event(db, subscribe):
    db.replica.config_set("notify-keyspace-events", "KEA")
    subscriber = subscribe(db.replica, "__keyevent@0__:rl.alert")
    take(db, "k", "1/day", "ALERT", "100")
    assert subscriber.heard(db.node("k")) == []
    db.replica.config_set("notify-keyspace-events", "")


@pytest.mark.topologies("single", "aof")
def test_a_restart_repeats_nothing(db, subscribe):
    node = db.node("k")
    subscriber, words = subscribe(node), ["10/day", "ALERT", "50,90"]
    take(db, "k", *words, "COST", 6)
    assert len(subscriber.heard(node)) == 1
    node.execute_command("DEBUG", "LOADAOF" if db.topology == "aof" else "RELOAD")
    take(db, "k", *words)
    take(db, "k", *words, "REFUND", 5)
    take(db, "k", *words, "COST", 5)
    assert subscriber.heard(node) == []
    take(db, "k", *words, "COST", 2)
    assert [json.loads(text)["percent"] for text in subscriber.heard(node)] == [90]


def test_a_promoted_replica_repeats_nothing(servers, subscribe):
    primary, replica = servers(), servers()
    replica.follow(primary)
    for server in (primary, replica):
        server.clock.freeze()
    words = [COMMAND, "k", "10/day", "ALERT", "50,90"]
    primary.run(*words, "COST", 6)
    primary.wait_for(replica)
    replica.run("REPLICAOF", "NO", "ONE")
    subscriber = subscribe(replica.client)
    replica.run(*words)
    assert subscriber.heard(replica.client) == []
    replica.run(*words, "COST", 2)
    assert [json.loads(text)["percent"] for text in subscriber.heard(replica.client)] == [90]


def test_the_channel_is_a_setting(server, subscribe):
    assert server.run("CONFIG", "GET", "ratelimit.alert-channel")[1] == CHANNEL
    usual, other = subscribe(server.client), subscribe(server.client, "warnings")
    server.run("CONFIG", "SET", "ratelimit.alert-channel", "warnings")
    take(server, "k", "1/day", "ALERT", "100")
    server.run("CONFIG", "SET", "ratelimit.alert-channel", "")
    take(server, "silent", "1/day", "ALERT", "100")
    server.run("CONFIG", "SET", "ratelimit.alert-channel", CHANNEL)
    assert usual.heard(server.client) == []
    assert [json.loads(text)["key"] for text in other.heard(server.client)] == ["k"]


def test_the_keyspace_hears_of_it_too(server, subscribe):
    server.run("CONFIG", "SET", "notify-keyspace-events", "KEd")
    subscriber = subscribe(server.client, "__keyevent@0__:rl.alert")
    take(server, "k", "10/day", "ALERT", "50", "COST", 4)
    take(server, "k", "10/day", "ALERT", "50", "COST", 4)
    take(server, "k", "10/day", "ALERT", "50", "COST", 2)
    assert subscriber.heard(server.client) == ["k"]
    server.run("CONFIG", "SET", "notify-keyspace-events", "")


def test_it_is_heard_from_scripts_and_transactions(db, subscribe):
    node = db.node("k")
    subscriber = subscribe(node)
    node.eval("return redis.call('RL.QUOTA', KEYS[1], '2/day', 'ALERT', '50,100')", 1, "k")
    transaction = node.pipeline(transaction=True)
    transaction.execute_command(COMMAND, "k", "2/day", "ALERT", "50,100")
    transaction.execute()
    assert [json.loads(text)["percent"] for text in subscriber.heard(node)] == [50, 100]


# ---- without a database of zones

NO_ZONES = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <string.h>
char *realpath(const char *path, char *out) {
    if (strstr(path, "zoneinfo")) {
        errno = ENOENT;
        return 0;
    }
    char *(*real)(const char *, char *) = (char *(*)(const char *, char *))dlsym(RTLD_NEXT, "realpath");
    return real(path, out);
}
char *__realpath_chk(const char *path, char *out, unsigned long size) {
    (void)size;
    return realpath(path, out);
}
"""


@pytest.fixture
def without_zones(servers, tmp_path, monkeypatch):
    """Makes servers on a machine that seems to have no tz database."""
    source, library = tmp_path / "nozones.c", tmp_path / "nozones.so"
    source.write_text(NO_ZONES)
    compiler = os.environ.get("CC", "cc").split()
    subprocess.run([*compiler, "-shared", "-fPIC", "-w", "-o", str(library), str(source), "-ldl"], check=True)
    before = harness.ENVIRON.get("LD_PRELOAD", "")  # a sanitizer's, which has to come first
    monkeypatch.setitem(harness.ENVIRON, "LD_PRELOAD", f"{before}:{library}".strip(":"))
    return servers


def test_a_missing_database_is_a_clear_error(without_zones):
    server = without_zones()
    assert take(server, "k", "1/day")[0] == 1
    assert take(server, "k", "1/day", "TZ", "+01:00")[0] == 0
    with pytest.raises(redis.ResponseError, match="TZ needs the tz database, which this machine lacks"):
        take(server, "other", "1/day", "TZ", "Europe/London")


def test_a_replica_needs_no_zones(servers, without_zones, monkeypatch):
    replica = without_zones("--appendonly", "yes")
    monkeypatch.undo()
    primary = servers()
    replica.follow(primary)
    for server in (primary, replica):
        server.clock.freeze()
    words = [COMMAND, "k", "10/day", "TZ", "America/New_York", "HISTORY", 5, "ALERT", "50"]
    for _ in range(4):
        primary.run(*words, "COST", 6)
        primary.clock.advance(ms=DAY)
    primary.clock.back(ms=DAY)
    replica.clock.freeze(primary.clock.now_us)
    primary.wait_for(replica)
    assert replica.contents() == primary.contents()
    assert replica.state("k") == primary.state("k")
    assert replica.run("RL.HISTORY", "k") == primary.run("RL.HISTORY", "k")
    rewriting = ("aof_rewrite_in_progress", "aof_rewrite_scheduled")
    until(lambda: not any(replica.info(field, "persistence") for field in rewriting), "the rewrite")
    replica.run("DEBUG", "LOADAOF")
    assert replica.contents() == primary.contents()


# ---- against the model

ZONES = ["UTC", "-03:00", "+05:45", "America/New_York", "Australia/Lord_Howe", "America/Sao_Paulo", "Pacific/Apia"]
ZONES += ["Asia/Kathmandu", "Europe/London", "Africa/Casablanca"]
COUNTS = st.one_of(st.integers(0, 20), st.integers(0, 10**12))
STARTS = [START_US, 0, 10**15] + [
    1000 * ms(*when)
    for when in [(2024, 3, 10, 6), (2024, 11, 3, 5), (2024, 4, 6, 14), (2011, 12, 29, 12), (2018, 11, 4), (2250, 2, 27)]
]


def limit(units, unit, zone, anchor):
    return QuotaLimit(units, unit, zone, 1 + anchor % {"week": 7, "month": 31}.get(unit, 1))


def with_words(rule):
    return rule, rule.words()


LIMITS = st.builds(
    limit, COUNTS, st.sampled_from(["hour", "day", "week", "month", "year"]), st.sampled_from(ZONES), st.integers(0, 30)
)
STEPS = st.one_of(
    st.integers(-HOUR * 1000, HOUR * 1000), st.integers(-2 * DAY * 1000, 3 * DAY * 1000), st.integers(-(10**13), 10**14)
)
CALLS = calls(STEPS)
RULES = st.lists(LIMITS.map(with_words), min_size=1, max_size=3)


@settings(max_examples=300)
@given(traffic=CALLS, rules=RULES, start_us=st.sampled_from(STARTS))
def test_every_field_of_every_reply_is_the_models(server, traffic, rules, start_us):
    check_traffic(server.client, COMMAND, Quota(), traffic, rules, start_us=start_us)


@settings(max_examples=12)
@given(traffic=CALLS, rules=RULES)
def test_the_model_holds_in_every_topology(db, traffic, rules):
    check_traffic(db.node("k"), COMMAND, Quota(), traffic, rules)


ALERTS = st.lists(st.integers(1, 200), min_size=1, max_size=8, unique=True).map(lambda found: tuple(sorted(found)))


@settings(max_examples=150)
@given(
    traffic=calls(st.integers(-DAY * 1000, 2 * DAY * 1000)),
    unit=st.sampled_from(["hour", "day", "week"]),
    zone=st.sampled_from(ZONES),
    counts=st.lists(st.integers(0, 20), min_size=1, max_size=3),
    alerts=ALERTS,
)
def test_what_is_told_is_what_the_model_tells(server, traffic, unit, zone, counts, alerts):
    rules = [with_words(QuotaLimit(n, unit, zone, alerts=alerts)) for n in counts]
    model, subscriber = Quota(), Subscriber(server.client)
    check_traffic(server.client, COMMAND, model, traffic, rules)
    told = [json.loads(text) for text in subscriber.heard(server.client)]
    subscriber.pubsub.close()
    assert told == [
        {"key": "k", "kind": "quota", "percent": m["percent"], "used": m["used"], "limit": m["limit"]}
        | {"period_end_ms": m["end_ms"]}
        for m in model.messages
    ]


def test_what_is_used_is_bounded(server):
    call = [COMMAND, "k", "1/year", "COST", 10**12, "FORCE"]
    for _ in range(1000):
        server.run(*call)
    with pytest.raises(redis.ResponseError, match="would go above 1000000000000000 units"):
        server.run(*call)
    assert server.state("k")["percent_used"] == 10**17


# ---- copies, forgeries, errors

LIVELY = [
    ["5/day"],
    ["100/month", "TZ", "Europe/London", "ALERT", "5,50"],
    ["7/year", "HISTORY", 3],
    ["20/week", "ANCHOR", 3],
    ["9/day", "TZ", "America/New_York", "HISTORY", 100, "ALERT", "1,2,3"],
    ["0/month"],
]
HOURS_US = 20 * HOUR * 1000


@pytest.mark.parametrize("clock", ["frozen", "real"])
@pytest.mark.parametrize("seed", range(2))
def test_copies_are_equal_after_any_traffic(db, clock, seed):
    if clock == "real":
        db.clock.release()
    mix(db, COMMAND, LIVELY, seed, step_us=HOURS_US)


@pytest.mark.topologies("aof")
@pytest.mark.parametrize("preamble", ["yes", "no"])
def test_a_rewritten_log_is_equal(db, preamble):
    mix(db, COMMAND, LIVELY, 5, step_us=HOURS_US)
    check_rewritten_log(db, preamble)


@pytest.mark.parametrize("clock", ["frozen", "real"])
def test_dumps_and_copies_are_equal(server, clock):
    if clock == "real":
        server.clock.release()
    mix(server, COMMAND, LIVELY, 6, step_us=HOURS_US, calls=300)
    check_dumps_and_copies(server)


@pytest.mark.parametrize("seed", range(2))
def test_a_forged_payload_is_an_error_or_a_value_that_works(server, seed):
    for _ in range(8):
        take(server, "past", "5/day", "HISTORY", 9, "COST", 2)
        server.clock.advance(ms=DAY)
    made = [
        [COMMAND, "plain", "10/day", "COST", 4],
        [COMMAND, "zone", "10/month", "TZ", "Europe/London", "ANCHOR", 9, "ALERT", "1,80", "KEEP", "1h"],
    ]
    used = [
        ["RL.HISTORY", "k"],
        [COMMAND, "k", "10/day", "PEEK"],
        [COMMAND, "k", "7/month", "TZ", "Asia/Tokyo", "COST", 2, "FORCE", "HISTORY", 3, "KEEP", "1s"],
        ["RL.HISTORY", "k"],
        [COMMAND, "k", "10/hour", "REFUND", 1],
    ]
    check_forged(server, made, used, seed)


ZONE_SYNTAX = "must be UTC, an offset such as -03:00 or a zone such as America/Sao_Paulo"
NOT_ZONES = [
    "", " ", "../etc/passwd", "/etc/passwd", "Etc/../../x", "Etc/..", "./UTC", "/usr/share/zoneinfo/UTC", ".", "..",
    "Europe//London", "Europe/London/", "Europe/London ", "europe/london", "localtime", "posixrules", "right/UTC",
    "Europe\\London", "Europe/Lon.don", "Europe/London\x00", b"\xff\xfe", "3:00", "+3:00", "+03", "+0300", "+24:00",
    "-03:60", "+03:00:00", "A" * 65, "E" + "x" * 1000, "%s%n", "Ünited",
]  # fmt: skip
UNKNOWN_ZONES = ["Europe", "Atlantis/City", "UTC0", "EuropeLondon", "X" * 64, "Europe/London/x", "America/Sao_paulo"]


def table():
    yield from wrong_everywhere(COMMAND, "10/day")
    for quota in (
        "",
        "10",
        "10/",
        "/day",
        "10/s",
        "10/m",
        "10/2day",
        "10/days",
        "10/d",
        "-1/day",
        "1.5/day",
        "10/day ",
    ):
        yield [COMMAND, "k", quota], "ERR", ("quota must be count/period", "hour, day, week, month or year")
    yield [COMMAND, "k", "1000000000001/day"], "ERR", ("quota", "count from 0 to 1000000000000")
    yield from (([COMMAND, "k", "10/day", "TZ", zone], "ERR", ("TZ", ZONE_SYNTAX)) for zone in NOT_ZONES)
    yield from (([COMMAND, "k", "10/day", "TZ", zone], "ERR", ("TZ", "tz database")) for zone in UNKNOWN_ZONES)
    yield [COMMAND, "quota", "10/day", "TZ", "Atlantis/City"], "ERR", ("TZ", "tz database")
    yield [COMMAND, "quota", "10/day", "TZ", "Atlantis/City", "PEEK"], "ERR", ("TZ", "tz database")
    yield [COMMAND, "k", "10/day", "TZ"], "ERR", "TZ"
    for unit in ("hour", "day", "year"):
        yield [COMMAND, "k", f"10/{unit}", "ANCHOR", "1"], "ERR", ("ANCHOR", "month and week")
    for n in ("0", "32", "-1", "x", "", "1.5"):
        yield [COMMAND, "k", "10/month", "ANCHOR", n], "ERR", ("ANCHOR", "from 1 to 31")
    for n in ("0", "8", "31"):
        yield [COMMAND, "k", "10/week", "ANCHOR", n], "ERR", ("ANCHOR", "from 1 to 7")
    for n in ("0", "367", "-1", "x", "", "1.5"):
        yield [COMMAND, "k", "10/day", "HISTORY", n], "ERR", ("HISTORY", "from 1 to 366")
    for p in ("", ",", "80,", ",80", "80,,95", "80;95", "80, 95", "80%", "0", "1001", "-80", "8.5", "80,80", "x",
              "1,2,3,4,5,6,7,8,9", "99999999999999999999", "80,x"):  # fmt: skip
        yield [COMMAND, "k", "10/day", "ALERT", p], "ERR", ("ALERT", "such as 80,95")
    for option, value in (("TZ", "UTC"), ("HISTORY", "3"), ("ALERT", "80")):
        yield [COMMAND, "k", "10/day", option], "ERR", option
        yield [COMMAND, "k", "10/day", option, value, option, value], "ERR", (option, "twice")
    for word in ("ALIGN", "BURST", "SLOTS"):
        yield [COMMAND, "k", "10/day", word, "2"], "ERR", ("option", "TZ", "ANCHOR", "HISTORY", "ALERT", "KEEP")


@pytest.mark.parametrize("call, prefix, needles", table(), ids=map(label, table()))
def test_an_error_names_the_argument_and_changes_nothing(server, call, prefix, needles):
    take(server, "quota", "10/month", "COST", 3, "ALERT", "10", "HISTORY", 2)
    server.run("RL.TOKENBUCKET", "other", "10/h")
    server.run("SET", "string", "x")
    check_refused(server, call, prefix, needles)


def test_a_refused_call_writes_nothing(server):
    take(server, "k", "5/day", "COST", 5, "HISTORY", 3)
    before = server.contents(), server.info("rdb_changes_since_last_save")
    for words in ([], ["COST", 9], ["COST", 2, "UPTO"], ["PEEK"], ["HISTORY", 9], ["ALERT", "1"], ["KEEP", "1d"]):
        assert take(server, "k", "5/day", *words)[0] == 0
    assert (server.contents(), server.info("rdb_changes_since_last_save")) == before
