"""RL.ACQUIRE, RL.RENEW, RL.RELEASE: at most so many units in flight, and every lease ends by itself.

The model below knows a lease as a row of a dict and finds every wait by trying; the traffic compares all that the
server answers with it, field by field, while the clock moves both ways and the limit and the lease change.
"""

import re
from random import Random

import pytest
import redis
from harness import PRELOAD, START_US, connect, contents, pairs, until
from hypothesis import example, given, settings
from hypothesis import strategies as st
from test_citizen import told
from test_persistence import AOF, append_to_log, rewrite_aof
from windows import check_dumps_and_copies, check_forged, check_refused, check_rewritten_log, label

ACQUIRE, RENEW, RELEASE = "RL.ACQUIRE", "RL.RENEW", "RL.RELEASE"
START_MS = START_US // 1000
MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
LIMIT_MAX, IDS_MAX, ID_MAX, LISTED = 1_000_000, 1024, 128, 100


def acquire(db, key, limit, lease, *options):
    return db.run(ACQUIRE, key, limit, lease, *options)


def renew(db, key, lease, *ids):
    return db.run(RENEW, key, lease, *ids)


def release(db, key, *ids):
    return db.run(RELEASE, key, *ids)


def raw(client):
    """The same server, with answers in bytes: ids need not be text."""
    return connect(client.get_connection_kwargs()["port"])


# ---- the model


class Leases:
    """Rows of id: [units, end, length], those that were alive at the last write, at `at`."""

    def __init__(self):
        self.rows, self.at, self.rule = {}, 0, None

    def alive(self, now):
        """id: (units, end), as seen at now. A lease ends at most its own length from now."""
        rows = self.rows.items()
        return {i: (units, min(end, now + length)) for i, (units, end, length) in rows if end > max(now, self.at)}

    def move(self, now):
        """Writes down what is seen."""
        seen = self.alive(now)
        self.rows = {i: [units, end, self.rows[i][2]] for i, (units, end) in seen.items() if end > now}
        self.at = now if self.rows else 0

    def repair(self, now):
        if self.at > now:
            self.move(now)

    def extend(self, i, now, length):
        if now + length > self.rows[i][1]:
            self.rows[i][1:] = [now + length, length]

    @staticmethod
    def granted(limit, alive, ids, cost, upto):
        """Which ids, and how many units each new one gets."""
        new = [i for i in ids if i not in alive]
        room = limit - sum(units for units, _ in alive.values())
        if not new or cost * len(new) <= room:
            return ids, cost
        if not upto:
            return [], 0
        room = max(room, 0)
        if len(ids) == 1:
            return (ids, room) if room else ([], 0)
        return [i for i in ids if i in alive or i in new[:room]], 1

    def wait(self, limit, alive, ids, cost, upto, now):
        """The first end after which the same call passes; -1 where none is."""
        for at in [now, *sorted({end for _, end in alive.values()})]:
            left = {i: row for i, row in alive.items() if row[1] > at}
            if self.granted(limit, left, ids, cost, upto)[0]:
                return at - now
        return -1

    def acquire(self, now, limit, length, ids, cost, upto, peek):
        alive = self.alive(now)
        granted, each = self.granted(limit, alive, ids, cost, upto)
        new = [i for i in granted if i not in alive]
        allowed = each * len(new) + sum(alive[i][0] for i in granted if i in alive)
        wait = self.wait(limit, alive, ids, cost, upto, now)
        if not peek:
            self.repair(now)
        if granted and not peek:
            self.move(now)
            self.rows.update({i: [each, 0, 0] for i in new})
            for i in granted:
                self.extend(i, now, length)
            self.at, self.rule = now, (limit, length)
        return [allowed, limit, limit - self.used(now), wait, self.reset(now), [] if peek else granted]

    def renew(self, now, length, ids):
        alive = self.alive(now)
        self.repair(now)
        if any(i in alive for i in ids):
            self.move(now)
        for i in ids:
            if i in alive:
                self.extend(i, now, length)
        return [int(i in alive) for i in ids]

    def release(self, now, ids):
        gone = {i for i in ids if i in self.alive(now)}
        self.repair(now)
        if gone:
            self.move(now)
        self.rows = {i: row for i, row in self.rows.items() if i not in gone}
        return len(gone)

    def used(self, now):
        return sum(units for units, _ in self.alive(now).values())

    def reset(self, now):
        return max([end - now for _, end in self.alive(now).values()], default=0)

    def describe(self, now, cost):
        alive = self.alive(now)
        if not alive:
            return None
        limit, length = self.rule
        listed = sorted(alive, key=lambda i: (self.rows[i][1], i))[:LISTED]
        return {
            "kind": "leases",
            "rule": f"{limit} {notation(length)}",
            "limit": limit,
            "remaining": limit - self.used(now),
            "used": self.used(now),
            "wait_ms": self.wait(limit, alive, [None], cost, False, now),
            "reset_ms": self.reset(now),
            "leases_count": len(alive),
            "leases": [[i, *alive[i]] for i in listed],
        }


def notation(ms):
    for unit, name in [(7 * DAY, "w"), (DAY, "d"), (HOUR, "h"), (MINUTE, "m"), (1000, "s"), (1, "ms")]:
        if ms % unit == 0:
            return f"{ms // unit}{name}"


# ---- traffic, and what the model says to it

IDS = [b"a", b"b", b"a\x00", b"job:1", b"\x00", b"\xff\xfe\r\n", b"x" * ID_MAX, b"x" * (ID_MAX - 1) + b"y"]
COSTS = st.one_of(
    st.just(("units", 1)),
    st.tuples(st.just("units"), st.integers(1, 6)),
    st.tuples(st.sampled_from(["limit", "remaining"]), st.integers(-2, 2)),
    st.tuples(st.just("units"), st.integers(1, 10**12)),
)
NEAR_US = [-1_000_000, -1000, -1, 0, 1, 999, 1000, 1_000_000]
STEPS = st.one_of(  # of time, some relative to what was answered last
    st.just(("us", 0)),
    st.just(("us", 0)),
    st.tuples(st.sampled_from(["wait_ms", "reset_ms"]), st.sampled_from(NEAR_US)),
    st.tuples(st.just("us"), st.one_of(st.integers(0, 3_000_000), st.integers(-5_000_000, 5_000_000))),
    st.tuples(st.just("us"), st.integers(-(10**11), 10**11)),
)
WHICH = st.lists(st.integers(0, 11), min_size=1, max_size=6, unique=True)
FLAGS = st.tuples(st.booleans(), st.sampled_from([False, False, True]))
CALLS = st.lists(
    st.one_of(
        st.tuples(st.just("one"), STEPS, st.integers(0, 2), st.integers(0, 11), COSTS, FLAGS),
        st.tuples(st.just("several"), STEPS, st.integers(0, 2), WHICH, COSTS, FLAGS),
        st.tuples(st.just("made"), STEPS, st.integers(0, 2), st.none(), COSTS, FLAGS),
        st.tuples(st.just("renew"), STEPS, st.integers(0, 2), WHICH, COSTS, FLAGS),
        st.tuples(st.just("release"), STEPS, st.integers(0, 2), WHICH, COSTS, FLAGS),
    ),
    min_size=1,
    max_size=30,
)
LENGTHS = st.sampled_from([1, 999, 1000, 1500, 2000, 5000, MINUTE, 90_000, HOUR, 366 * DAY])
RULES = st.lists(
    st.tuples(st.one_of(st.integers(1, 8), st.sampled_from([1, LIMIT_MAX])), LENGTHS), min_size=1, max_size=3
)


class Traffic:
    """One key, its model, and the ids that were ever used in it."""

    def __init__(self, client, rules):
        self.client, self.rules = client, rules
        self.model, self.ids = Leases(), list(IDS)
        self.now_us, self.answer = START_US, [0] * 5
        client.delete("k")

    def pick(self, which):
        return list(dict.fromkeys(self.ids[n % len(self.ids)] for n in which))

    def send(self, cost, *call):
        """The call, and RL.STATE after it."""
        pipeline = self.client.pipeline(transaction=False)
        pipeline.execute_command("RL.DEBUG", "CLOCK", self.now_us)
        pipeline.execute_command(*call)
        pipeline.execute_command("RL.STATE", "k", "COST", cost)
        _, reply, flat = pipeline.execute()
        state = flat and {name.decode(): value for name, value in pairs(flat).items()}
        return reply, state and {**state, "kind": state["kind"].decode(), "rule": state["rule"].decode()}

    def step(self, what, step, rule, which, cost, flags):
        since, step_us = step
        self.now_us += step_us + {"us": 0, "wait_ms": max(self.answer[3], 0), "reset_ms": self.answer[4]}[since] * 1000
        self.now_us = min(max(self.now_us, 0), 2**53 - 1)
        now, (limit, length) = self.now_us // 1000, self.rules[rule % len(self.rules)]
        base, units = cost
        units = min(max(units + {"units": 0, "limit": limit, "remaining": self.answer[2]}[base], 1), 10**12)
        before, lease = self.model.used(now), f"{length}ms"
        if what == "renew":
            ids = self.pick(which)
            call, expected = [RENEW, "k", lease, *ids], self.model.renew(now, length, ids)
            reply, state = self.send(units, *call)
        elif what == "release":
            ids = self.pick(which)
            call, expected = [RELEASE, "k", *ids, *ids[:1]], self.model.release(now, ids)
            reply, state = self.send(units, *call)
        else:
            upto, peek = flags
            ids = {"one": lambda: self.pick([which]), "several": lambda: self.pick(which), "made": list}[what]()
            words = {"one": ["ID", *ids], "several": ["IDS", len(ids), *ids], "made": []}[what]
            words += ["COST", units] if what != "several" else []
            call = [ACQUIRE, "k", limit, lease, *words, *["UPTO"] * upto, *["PEEK"] * peek]
            reply, state = self.send(units, *call)
            if what == "made":
                ids = reply[5] or [b"\x00nobody's"]
                assert reply[5] == [] or (re.fullmatch(rb"[0-9a-f]{24}", ids[0]) and ids[0] not in self.ids)
                self.ids += reply[5]
            cost = 1 if what == "several" else units
            expected = self.answer = self.model.acquire(now, limit, length, ids, cost, upto, peek)
        where = f"at {self.now_us}: {call}"
        assert reply == expected, where
        assert state == self.model.describe(now, units), where
        if state and state["used"] > before:
            assert what not in ("renew", "release") and state["used"] <= limit, where


def check_traffic(client, calls, rules):
    traffic = Traffic(client, rules)
    for call in calls:
        traffic.step(*call)


def at_once(what, which, cost=("units", 1), step=("us", 0), rule=0, flags=(False, False)):
    return what, step, rule, which, cost, flags


@settings(max_examples=400)
@given(calls=CALLS, rules=RULES)
@example(  # a wait during which one of the ids that are asked for ends, and needs room of its own
    calls=[at_once("one", 0), at_once("one", 1, step=("us", 1_000_000)), at_once("several", [0, 2, 3])],
    rules=[(3, 5000)],
)
@example(  # leases that a step back left ahead: seen, then moved by the renewal
    calls=[
        at_once("several", [0, 1, 2]),
        at_once("made", None, step=("us", -(10**10)), flags=(False, True)),
        at_once("renew", [1, 5], rule=1),
        at_once("made", None, step=("wait_ms", 0)),
    ],
    rules=[(3, HOUR), (2, 1)],
)
def test_every_field_of_every_reply_is_the_models(server, calls, rules):
    check_traffic(server.connect(), calls, rules)


@settings(max_examples=40)
@given(calls=CALLS, rules=RULES)
def test_the_model_holds_in_every_topology(db, calls, rules):
    check_traffic(raw(db.node("k")), calls, rules)


@pytest.mark.parametrize("seed", range(3))
def test_the_model_holds_for_many_leases(db, seed):
    """More than fit into a page of memory, and more than are listed."""
    random = Random(seed)
    traffic = Traffic(raw(db.node("k")), [(300, 10_000), (200, 2000), (400, 500)])
    traffic.ids = [b"%d" % n * random.randrange(1, 20) for n in range(450)]
    for _ in range(150):
        what = random.choice(["several", "several", "several", "made", "one", "renew", "release"])
        which = random.randrange(450) if what == "one" else random.sample(range(450), random.choice([1, 5, 60]))
        step_us = random.choice([0, 1, 30, 100, 700, -50, -1500]) * 1000
        traffic.step(
            *at_once(what, which, ("units", random.randrange(1, 9)), ("us", step_us), random.randrange(3)),
        )  # fmt: skip


# ---- by example


def test_a_first_session(db):
    assert acquire(db, "pool", 2, "30s", "ID", "a") == [1, 2, 1, 0, 30000, ["a"]]
    db.clock.advance(ms=10_000)
    assert acquire(db, "pool", 2, "30s", "ID", "b") == [1, 2, 0, 0, 30000, ["b"]]
    assert acquire(db, "pool", 2, "30s", "ID", "c") == [0, 2, 0, 20000, 30000, []]
    assert renew(db, "pool", "30s", "a", "c") == [1, 0]
    assert release(db, "pool", "b") == 1
    assert acquire(db, "pool", 2, "30s", "ID", "c") == [1, 2, 0, 0, 30000, ["c"]]
    assert db.state("pool") == {
        "kind": "leases",
        "rule": "2 30s",
        "limit": 2,
        "remaining": 0,
        "used": 2,
        "wait_ms": 30000,
        "reset_ms": 30000,
        "leases_count": 2,
        "leases": [["a", 1, START_MS + 40_000], ["c", 1, START_MS + 40_000]],
    }


def test_a_holder_that_dies_frees_its_units_when_the_lease_ends(db):
    acquire(db, "k", 3, "10s", "ID", "dead", "COST", 3)
    db.clock.advance(ms=9999)
    assert acquire(db, "k", 3, "10s", "ID", "next") == [0, 3, 0, 1, 1, []]
    db.clock.advance(ms=1)
    assert db.state("k") is None
    assert acquire(db, "k", 3, "10s", "ID", "next") == [1, 3, 2, 0, 10000, ["next"]]


def test_a_batch_is_released_one_by_one(db):
    jobs = [f"job:{n}" for n in range(20)]
    assert acquire(db, "k", 25, "1m", "IDS", 20, *jobs) == [20, 25, 5, 0, 60000, jobs]
    for n, job in enumerate(jobs):
        assert release(db, "k", job) == 1
        assert acquire(db, "k", 25, "1m", "PEEK")[2] == 6 + n
    assert db.run("EXISTS", "k") == 0


def test_a_limit_of_one_is_a_lock(db):
    assert acquire(db, "lock", 1, "5s", "ID", "me")[0] == 1
    assert acquire(db, "lock", 1, "5s", "ID", "you") == [0, 1, 0, 5000, 5000, []]
    db.clock.advance(ms=2000)
    assert renew(db, "lock", "5s", "me") == [1]
    assert acquire(db, "lock", 1, "5s", "ID", "you")[3] == 5000
    assert release(db, "lock", "you") == 0
    assert release(db, "lock", "me") == 1
    assert acquire(db, "lock", 1, "5s", "ID", "you")[0] == 1


def test_an_id_that_is_alive_is_the_same_lease(db):
    assert acquire(db, "k", 5, "10s", "ID", "a", "COST", 4) == [4, 5, 1, 0, 10000, ["a"]]
    for lease, reset_ms in [("10s", 10000), ("1s", 10000), ("1m", 60000), ("10s", 60000)]:
        for cost in (1, 4, 5, 1000):
            assert acquire(db, "k", 5, lease, "ID", "a", "COST", cost) == [4, 5, 1, 0, reset_ms, ["a"]]
    assert acquire(db, "k", 5, "10s", "ID", "a", "COST", 9, "UPTO")[0] == 4
    assert acquire(db, "k", 5, "10s", "IDS", 2, "a", "b") == [5, 5, 0, 0, 60000, ["a", "b"]]
    assert acquire(db, "k", 1, "10s", "ID", "a") == [4, 1, -4, 0, 60000, ["a"]], "alive, whatever the limit is now"
    assert db.state("k")["leases_count"] == 2


def test_an_id_whose_lease_has_ended_is_free_for_a_new_one(db):
    acquire(db, "k", 5, "1s", "ID", "a", "COST", 4)
    acquire(db, "k", 5, "1m", "ID", "b")
    db.clock.advance(ms=1000)
    assert acquire(db, "k", 5, "10s", "ID", "a", "COST", 2) == [2, 5, 2, 0, 59000, ["a"]]


def test_several_ids_are_all_or_none(db):
    acquire(db, "k", 4, "10s", "ID", "a")
    assert acquire(db, "k", 4, "10s", "IDS", 4, "b", "c", "d", "e") == [0, 4, 3, 10000, 10000, []]
    assert acquire(db, "k", 4, "10s", "IDS", 5, "b", "c", "d", "e", "f") == [0, 4, 3, -1, 10000, []]
    assert acquire(db, "k", 4, "10s", "IDS", 4, "b", "a", "c", "d") == [4, 4, 0, 0, 10000, ["b", "a", "c", "d"]]


def test_with_upto_the_first_that_fit(db):
    acquire(db, "k", 4, "10s", "IDS", 2, "x", "y")
    assert acquire(db, "k", 4, "10s", "IDS", 5, "b", "y", "c", "d", "e", "UPTO") == [3, 4, 0, 0, 10000, ["b", "y", "c"]]
    assert acquire(db, "k", 4, "10s", "IDS", 2, "d", "e", "UPTO") == [0, 4, 0, 10000, 10000, []]
    assert acquire(db, "k", 4, "10s", "IDS", 2, "d", "y", "UPTO") == [1, 4, 0, 0, 10000, ["y"]]
    assert acquire(db, "n", 4, "10s", "ID", "b", "COST", 9, "UPTO") == [4, 4, 0, 0, 10000, ["b"]]
    assert acquire(db, "n", 4, "10s", "ID", "c", "COST", 9, "UPTO") == [0, 4, 0, 10000, 10000, []]


def test_a_peek_answers_and_changes_nothing(db):
    assert acquire(db, "k", 4, "10s", "IDS", 2, "a", "b", "PEEK") == [2, 4, 4, 0, 0, []]
    assert db.state("k") is None
    acquire(db, "k", 4, "10s", "ID", "a", "COST", 3)
    before = db.state("k"), contents(db.node("k"))
    assert acquire(db, "k", 4, "1m", "ID", "b", "COST", 2, "PEEK") == [0, 4, 1, 10000, 10000, []]
    assert acquire(db, "k", 4, "1m", "ID", "b", "COST", 2, "PEEK", "UPTO") == [1, 4, 1, 0, 10000, []]
    assert acquire(db, "k", 4, "1m", "ID", "a", "PEEK") == [3, 4, 1, 0, 10000, []]
    assert acquire(db, "k", 4, "1m", "PEEK") == [1, 4, 1, 0, 10000, []]
    assert (db.state("k"), contents(db.node("k"))) == before


def test_made_ids_are_unique(db):
    made = [acquire(db, "k", 5000, "1m")[5][0] for _ in range(1000)]
    made += [acquire(db, "other", 5000, "1m")[5][0] for _ in range(1000)]
    assert len(set(made)) == 2000
    assert all(re.fullmatch("[0-9a-f]{24}", i) for i in made)
    assert db.state("k")["leases_count"] == 1000
    assert release(db, "k", *made[:1000]) == 1000


def test_a_made_id_takes_a_cost(db):
    [*answer, [made]] = acquire(db, "k", 10, "1m", "COST", 7)
    assert answer == [7, 10, 3, 0, 60000]
    assert acquire(db, "k", 10, "1m", "COST", 7, "UPTO")[0] == 3
    assert acquire(db, "k", 10, "1m", "ID", made)[0] == 7
    assert release(db, "k", made) == 1


def test_a_renewal_never_revives(db):
    acquire(db, "k", 2, "1s", "ID", "a")
    acquire(db, "k", 2, "1m", "ID", "b")
    db.clock.advance(ms=1000)
    assert renew(db, "k", "1m", "a", "b", "never was") == [0, 1, 0]
    db.clock.back(ms=500)
    assert renew(db, "k", "1m", "a") == [0], "what had ended stays so when the clock is stepped back"
    assert renew(db, "missing", "1m", "a", "b") == [0, 0]
    assert db.run("EXISTS", "missing") == 0


def test_a_renewal_never_shortens(db):
    acquire(db, "k", 2, "1m", "ID", "a")
    for lease in ("1ms", "30s", "59999ms", "60s"):
        assert renew(db, "k", lease, "a") == [1]
        assert db.state("k")["reset_ms"] == 60000
    assert renew(db, "k", "61s", "a") == [1]
    assert db.state("k")["leases"] == [["a", 1, START_MS + 61_000]]
    assert db.state("k")["rule"] == "2 1m", "the rule is that of the last RL.ACQUIRE"


def test_a_renewal_of_one_id_twice(db):
    acquire(db, "k", 2, "1s", "ID", "a")
    assert renew(db, "k", "2s", "a", "a", "b", "a") == [1, 1, 0, 1]
    assert db.state("k")["leases"] == [["a", 1, START_MS + 2000]]


def test_releasing_twice_is_harmless(db):
    acquire(db, "k", 5, "1m", "IDS", 3, "a", "b", "c")
    assert release(db, "k", "a") == 1
    assert release(db, "k", "a") == 0
    assert release(db, "k", "a", "b", "b", "nobody") == 1
    assert db.state("k")["used"] == 1
    assert release(db, "k", "c", "c") == 1
    assert db.run("EXISTS", "k") == 0
    assert release(db, "k", "c") == 0
    assert db.run("EXISTS", "k") == 0


def test_what_has_ended_is_not_released(db):
    acquire(db, "k", 5, "1s", "ID", "a")
    acquire(db, "k", 5, "1m", "ID", "b")
    db.clock.advance(ms=1000)
    assert release(db, "k", "a") == 0
    assert release(db, "k", "a", "b") == 1


@pytest.mark.parametrize(
    "call, wait_ms",
    [
        (["ID", "new"], 1000),
        (["COST", 3], 1000),
        (["COST", 4], 3000),
        (["COST", 6], 4000),
        (["IDS", 4, "n1", "n2", "n3", "n4"], 3000),
        (["IDS", 4, "a", "n2", "n3", "n4"], 3000),  # a ends first, and then needs room too
        (["IDS", 6, "n1", "n2", "n3", "n4", "n5", "c"], 3000),
        (["ID", "new", "COST", 9, "UPTO"], 1000),
        (["COST", 7], -1),
    ],
)
def test_a_wait_is_exact(db, call, wait_ms):
    acquire(db, "k", 6, "1s", "ID", "a", "COST", 3)
    acquire(db, "k", 6, "3s", "ID", "b", "COST", 2)
    acquire(db, "k", 6, "4s", "ID", "c")
    assert acquire(db, "k", 6, "1m", *call)[::3] == [0, wait_ms]
    if wait_ms > 0:
        db.clock.advance(ms=wait_ms - 1)
        assert acquire(db, "k", 6, "1m", *call)[::3] == [0, 1]
        db.clock.advance(ms=1)
        assert acquire(db, "k", 6, "1m", *call)[0] > 0


def test_a_raised_limit_gives_the_difference_and_a_lowered_one_forgives_nothing(db):
    acquire(db, "k", 4, "10s", "ID", "a", "COST", 4)
    assert acquire(db, "k", 6, "20s", "COST", 2) == [2, 6, 0, 0, 20000, db.state("k")["leases"][1][:1]]
    assert acquire(db, "k", 3, "20s") == [0, 3, -3, 10000, 20000, []]
    assert acquire(db, "k", 3, "20s", "COST", 3) == [0, 3, -3, 20000, 20000, []]
    assert db.state("k")["rule"] == "6 20s", "a refused call stores nothing"


def test_flapping_parameters_grant_nothing_extra(db):
    rules = [(3, "10s"), (5, "1ms"), (1, "1h"), (4, "1m")]
    db.clock.advance(us=500)
    granted = sum(acquire(db, "k", *rule)[0] for rule in rules * 10)
    assert granted == 5


def test_a_step_back_grants_nothing_and_locks_nothing(db):
    acquire(db, "k", 2, "10s", "IDS", 2, "a", "b")
    db.clock.back(ms=DAY)
    assert db.state("k")["reset_ms"] == 10000
    assert acquire(db, "k", 2, "10s") == [0, 2, 0, 10000, 10000, []]
    db.clock.advance(ms=9999)  # counted from the refused call, which moved the leases to now
    assert acquire(db, "k", 2, "10s")[::3] == [0, 1]
    db.clock.advance(ms=1)
    assert acquire(db, "k", 2, "10s", "COST", 2)[0] == 2


@pytest.mark.parametrize("call", [[RENEW, "k", "1ms", "a"], [RENEW, "k", "1ms", "nobody"], [RELEASE, "k", "nobody"]])
def test_renewing_and_releasing_repair_what_a_step_back_left(db, call):
    acquire(db, "k", 3, "10s", "IDS", 2, "a", "b")
    db.clock.back(ms=DAY)
    db.run(*call)
    db.clock.advance(ms=10_000)
    assert db.state("k") is None, "a lease ends at most its own length from now"


def test_releasing_one_repairs_the_others(server):
    acquire(server, "k", 3, "10s", "IDS", 2, "a", "b")
    server.clock.back(ms=DAY)
    assert release(server, "k", "a") == 1
    server.clock.advance(ms=10_000)
    assert server.state("k") is None, "a lease ends at most its own length from now"


@pytest.mark.parametrize("one", [b"\x00", b"\xff" * ID_MAX, bytes(range(ID_MAX)), b"\r\n", b"ID", b"COST", b"0", b" "])
def test_ids_are_bytes(db, one):
    client = raw(db.node("k"))
    assert client.execute_command(ACQUIRE, "k", 3, "1m", "ID", one)[5] == [one]
    assert client.execute_command(ACQUIRE, "k", 3, "1m", "IDS", 2, one, b"PEEK")[5] == [one, b"PEEK"]
    assert client.execute_command(RENEW, "k", "1m", one, one[:-1] or b"x", b"PEEK") == [1, 0, 1]
    leases = pairs(client.execute_command("RL.STATE", "k"))[b"leases"]
    assert [lease[0] for lease in leases] == sorted([one, b"PEEK"])
    assert client.execute_command(RELEASE, "k", one) == 1


@pytest.mark.parametrize("key", [b"", b"\x00", b"\xff\xfe\r\n", b"x" * 1_000_000], ids=range(4))
def test_keys_are_bytes(db, key):
    assert db.run(ACQUIRE, key, 3, "1m", "ID", "a")[0] == 1
    assert db.run(RENEW, key, "2m", "a") == [1]
    assert db.run(RELEASE, key, "a") == 1


def test_keywords_in_any_case_and_order(db):
    assert acquire(db, "k", 9, "1M", "upto", "Id", "a", "cOsT", 20) == [9, 9, 0, 0, 60000, ["a"]]
    assert acquire(db, "k", 9, "60s", "ids", 2, "a", "b", "peek") == [0, 9, 0, 60000, 60000, []]


def test_leases_may_be_long_and_short(db):
    assert acquire(db, "k", 2, "366d", "ID", "a") == [1, 2, 1, 0, 366 * DAY, ["a"]]
    assert acquire(db, "k", 2, "1ms", "ID", "b") == [1, 2, 0, 0, 366 * DAY, ["b"]]
    assert acquire(db, "k", 2, "1ms") == [0, 2, 0, 1, 366 * DAY, []]


def test_a_state_that_outlived_itself_is_gone_whatever_the_kind(db):
    acquire(db, "k", 2, "1s")
    db.clock.advance(ms=1000)
    assert db.run("RL.FIXED", "k", "5/s")[0] == 1
    db.clock.advance(ms=1000)
    assert renew(db, "k", "1m", "a") == [0]
    assert acquire(db, "k", 2, "1s")[0] == 1
    with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
        db.run("RL.FIXED", "k", "5/s")


def test_they_work_in_a_transaction(db):
    transaction = db.node("k").pipeline(transaction=True)
    for words in [[ACQUIRE, "k", 1, "1m", "ID", "a"], [ACQUIRE, "k", 1, "1m", "ID", "b"], [RENEW, "k", "2m", "a", "b"]]:
        transaction.execute_command(*words)
    transaction.execute_command(RELEASE, "k", "a", "b")
    assert transaction.execute() == [[1, 1, 0, 0, 60000, ["a"]], [0, 1, 0, 60000, 60000, []], [1, 0], 1]


def test_they_work_in_a_script(db):
    script = """
    local granted = redis.call('RL.ACQUIRE', KEYS[1], 2, '1m', 'IDS', 3, 'a', 'b', 'c', 'UPTO')[6]
    return {granted, redis.call('RL.RENEW', KEYS[1], '2m', unpack(granted)), redis.call('RL.RELEASE', KEYS[1], 'a')}
    """
    assert db.node("k").eval(script, 1, "k") == [["a", "b"], [1, 1], 1]


@pytest.mark.parametrize("protocol", [2, 3])
def test_both_protocols_get_the_same(server, protocol):
    client = server.connect(protocol=protocol, decode_responses=True)
    assert client.execute_command(ACQUIRE, "k", 2, "1m", "ID", "a") == [1, 2, 1, 0, 60000, ["a"]]
    assert client.execute_command(RENEW, "k", "1m", "a", "b") == [1, 0]
    state = client.execute_command("RL.STATE", "k")
    state = state if protocol == 3 else pairs(state)
    assert (state["leases_count"], state["leases"]) == (1, [["a", 1, START_MS + 60_000]])
    assert client.execute_command(RELEASE, "k", "a") == 1


# ---- copies

LIVELY = [(5, "1h"), (100, "2h"), (3, "1d"), (LIMIT_MAX, "30m"), (40, "366d")]


def mix(db, seed, calls=200, step_ms=600_000):
    """Leases taken, renewed, released and left to end, on some keys; a frozen clock moves both ways."""
    random, now_us = Random(seed), START_US
    for _ in range(calls):
        if db.clock.now_us is not None:
            now_us += random.randrange(-step_ms, 2 * step_ms) * 1000 + random.randrange(1000)
            db.clock.freeze(now_us)
        key, (limit, lease) = f"key:{random.randrange(6)}", random.choice(LIVELY)
        ids = random.sample([f"id:{n}" for n in range(60)], random.choice([1, 1, 3, 20]))
        options = random.choice([[], ["UPTO"], ["UPTO"], ["PEEK"]])
        what = random.randrange(8)
        if what < 3:
            acquire(db, key, limit, lease, "IDS", len(ids), *ids, *options)
        elif what < 4:
            acquire(db, key, limit, lease, "ID", ids[0], "COST", random.randrange(1, 9), *options)
        elif what < 5:
            acquire(db, key, limit, lease, "COST", random.randrange(1, 9), *options)
        elif what < 7:
            renew(db, key, lease, *ids)
        else:
            release(db, key, *ids)


@pytest.mark.parametrize("clock", ["frozen", "real"])
@pytest.mark.parametrize("seed", range(3))
def test_copies_are_equal_after_any_traffic(db, clock, seed):
    """By digest, expiry included: after a reload, a replay of the log, on the replica. See check_copies."""
    if clock == "real":
        db.clock.release()
    mix(db, seed)


@pytest.mark.topologies("aof")
@pytest.mark.parametrize("preamble", ["yes", "no"])
def test_a_rewritten_log_is_equal(db, preamble):
    mix(db, 5, calls=300)
    check_rewritten_log(db, preamble)


@pytest.mark.parametrize("clock", ["frozen", "real"])
def test_dumps_and_copies_are_equal(server, clock):
    if clock == "real":
        server.clock.release()
    mix(server, 6, calls=400, step_ms=60_000)
    check_dumps_and_copies(server)


@pytest.mark.parametrize("preamble", ["yes", "no"])
def test_a_restart_from_the_log_is_equal(servers, preamble):
    server = servers(*AOF, "--aof-use-rdb-preamble", preamble)
    mix(server, 7)
    before = server.contents()
    assert len(before[1]) == 6
    assert server.restart().contents() == before, "a log of effects alone"
    rewrite_aof(server)
    mix(server, 8)
    before = server.contents()
    assert server.restart().contents() == before, "rewritten, then more effects"


def test_a_restart_from_a_dump_of_all_is_equal(servers):
    server = servers()
    mix(server, 9)
    before = server.contents()
    server.run("SAVE")
    assert server.restart().contents() == before


def test_a_copy_goes_its_own_way(server):
    ids = [f"id:{n}" for n in range(200)]
    acquire(server, "k", 300, "1m", "IDS", 200, *ids)
    before = server.state("k"), server.run("DEBUG", "DIGEST-VALUE", "k")
    server.run("COPY", "k", "copy")
    release(server, "copy", *ids[::3])
    acquire(server, "copy", 400, "2m", "COST", 9)
    renew(server, "copy", "3m", *ids)
    server.run("DEL", "copy")
    assert (server.state("k"), server.run("DEBUG", "DIGEST-VALUE", "k")) == before


def test_a_thousand_leases_travel(server):
    source = server.connect()
    for n in range(10):
        server.clock.advance(ms=7)
        acquire(server, "k", 5000, "1m", "IDS", 300, *(f"{n}:{i}" * (1 + i % 9) for i in range(300)))
    digest, dump = server.run("DEBUG", "DIGEST-VALUE", "k"), source.dump("k")
    server.run("DEL", "k")
    source.restore("k", 0, dump)
    assert server.run("DEBUG", "DIGEST-VALUE", "k") == digest
    assert server.state("k")["leases_count"] == 3000
    server.run("DEBUG", "RELOAD")
    assert server.run("DEBUG", "DIGEST-VALUE", "k") == digest


@pytest.fixture
def replicated(servers):
    """A replica whose clock is hours ahead."""
    primary, replica = servers(), servers()
    replica.follow(primary)
    primary.clock.freeze()
    replica.clock.freeze(START_US + 5 * HOUR * 1000)
    return primary, replica


def check_equal(primary, replica):
    primary.wait_for(replica)
    assert primary.contents() == replica.contents()


@pytest.mark.parametrize("seed", range(3))
def test_a_replica_is_equal_after_any_traffic(replicated, seed):
    mix(replicated[0], seed, calls=400)
    check_equal(*replicated)


def test_a_replica_is_equal_with_real_clocks(replicated):
    for server in replicated:
        server.clock.release()
    mix(replicated[0], 9, calls=400)
    check_equal(*replicated)
    assert all(expiry > 0 for expiry in replicated[1].contents()[1].values())


def test_a_replica_decides_nothing_and_tells_the_state(replicated):
    primary, replica = replicated
    acquire(primary, "k", 3, "1h", "ID", "a")
    primary.wait_for(replica)
    for call in (
        [ACQUIRE, "k", 3, "1h"],
        [ACQUIRE, "k", 3, "1h", "PEEK"],
        [RENEW, "k", "1h", "a"],
        [RELEASE, "k", "a"],
    ):
        with pytest.raises(redis.ReadOnlyError):
            replica.run(*call)
    assert replica.state("k") is None, "a replica tells the time by its own clock"
    replica.clock.freeze(START_US + 1_000_000)
    assert replica.state("k")["leases"] == [["a", 1, START_MS + HOUR]]
    assert replica.state("k")["reset_ms"] == HOUR - 1000


def test_what_changes_nothing_is_not_replicated(replicated):
    primary, _ = replicated
    acquire(primary, "k", 2, "1h", "ID", "a", "COST", 2)
    before = primary.offset(), primary.contents()
    acquire(primary, "k", 2, "1h")
    acquire(primary, "k", 2, "1h", "COST", 9)
    acquire(primary, "k", 2, "1h", "IDS", 2, "a", "b")
    acquire(primary, "k", 2, "1h", "ID", "a", "PEEK")
    renew(primary, "k", "1h", "nobody")
    release(primary, "k", "nobody")
    renew(primary, "missing", "1h", "a")
    release(primary, "missing", "a")
    assert (primary.offset(), primary.contents()) == before


def test_a_repair_is_replicated_though_the_call_is_refused(replicated):
    primary, replica = replicated
    acquire(primary, "k", 2, "1h", "COST", 2)
    before = primary.contents()
    primary.clock.back(ms=DAY)
    acquire(primary, "k", 2, "1h", "PEEK")
    assert primary.contents() == before, "a peek repairs nothing"
    assert acquire(primary, "k", 2, "1h")[0] == 0
    assert primary.contents() != before
    check_equal(primary, replica)


def test_a_promoted_replica_knows_the_leases(replicated):
    primary, replica = replicated
    replica.clock.freeze()
    acquire(primary, "k", 2, "1h", "IDS", 2, "a", "b")
    primary.wait_for(replica)
    primary.kill()
    replica.run("REPLICAOF", "NO", "ONE")
    assert acquire(replica, "k", 2, "1h", "ID", "c")[::3] == [0, HOUR]
    assert renew(replica, "k", "2h", "a") == [1]
    assert release(replica, "k", "b") == 1


# ---- payloads that nobody wrote


@pytest.mark.parametrize("seed", range(3))
def test_a_forged_payload_is_an_error_or_a_value_that_works(server, seed):
    for n in range(40):
        server.clock.advance(ms=n * 7)
        acquire(server, "few", 100, "1m", "ID", f"id:{n % 7}", "COST", 1 + n % 3)
        acquire(server, "many", 100, "10m", "IDS", 2, f"a:{n}", f"b:{n}", "UPTO")
    acquire(server, "one", 1, "366d", "ID", "x" * 60)
    used = [
        [ACQUIRE, "k", 10, "1m", "PEEK"],
        [ACQUIRE, "k", 100, "1m", "IDS", 3, "id:1", "a:2", "new", "UPTO"],
        [RENEW, "k", "5m", "id:1", "id:2", "a:1", "b:39", "x" * 60],
        [RELEASE, "k", "id:2", "a:1", "new"],
    ]
    check_forged(server, [], used, seed)


def test_forged_effects_in_a_log_never_stop_the_server(servers):
    server, random = servers(*AOF), Random(1)
    server.clock.freeze()
    acquire(server, "k", 10, "1m", "IDS", 3, "a", "b", "c")
    renew(server, "k", "5m", "a", "b")
    release(server, "k", "c")
    server.clock.back(ms=HOUR)
    acquire(server, "k", 2, "1m", "COST", 9)  # refused, and repairs
    effects = [words[2] for words in server.logged() if words[0] == b"RL.APPLY"]
    assert len(effects) == 4
    server.stop()

    def forged():
        effect = bytearray(random.choice(effects))
        for _ in range(random.choice([1, 1, 2, 4])):
            effect[random.randrange(1, len(effect))] = random.randrange(256)
        return bytes(effect[: random.choice([None, None, None, random.randrange(len(effect))])])

    append_to_log(server, *([b"RL.APPLY", b"k%d" % random.randrange(9), forged()] for _ in range(3000)))
    server.start()
    for key in server.run("KEYS", "*"):
        assert server.connect().execute_command("RL.STATE", key) is None or server.connect().dump(key)
    before = server.contents()
    server.run("DEBUG", "RELOAD")
    assert server.contents() == before


# ---- a well-behaved guest


def test_the_type_has_a_name(server):
    acquire(server, "k", 5, "1m")
    assert server.client.type("k") == "rl-leases"
    assert list(server.client.scan_iter(_type="rl-leases")) == ["k"]


@pytest.mark.parametrize(
    "name, arity, flags",
    [(ACQUIRE, -4, {"write", "denyoom", "fast"}), (RENEW, -4, {"write", "fast"}), (RELEASE, -3, {"write", "fast"})],
)
def test_commands_tell_their_flags_and_keys(server, name, arity, flags):
    client = server.connect(protocol=3, decode_responses=True)
    client.response_callbacks.clear()
    [[_, told_arity, told_flags, *positions, _, _, specs, _]] = client.execute_command("COMMAND", "INFO", name)
    assert (told_arity, positions, len(specs)) == (arity, [1, 1, 1], 1)
    assert flags <= set(told_flags)
    assert ("denyoom" in told_flags) == (name == ACQUIRE)
    assert client.execute_command("COMMAND", "GETKEYS", name, "k", "5", "1m") == ["k"]


def test_key_patterns_bind(server):
    server.run("ACL", "SETUSER", "app", "reset", "on", "nopass", "~jobs:*", "+rl.acquire", "+rl.renew", "+rl.release")
    app = server.connect(username="app", password="", decode_responses=True)
    assert app.execute_command(ACQUIRE, "jobs:1", 5, "1m", "ID", "a")[0] == 1
    assert app.execute_command(RENEW, "jobs:1", "1m", "a") == [1]
    for call in ([ACQUIRE, "k", 5, "1m"], [RENEW, "k", "1m", "jobs:1"], [RELEASE, "k", "jobs:1"]):
        with pytest.raises(redis.exceptions.NoPermissionError):
            app.execute_command(*call)
    server.run("ACL", "DELUSER", "app")


def test_a_full_memory_renews_and_releases(servers):
    primary, replica = servers(), servers()
    replica.follow(primary)
    primary.clock.freeze()
    ids = [f"id:{n}" for n in range(500)]
    acquire(primary, "k", 1000, "1m", "IDS", 500, *ids)
    acquire(primary, "lock", 1, "1m", "ID", "me")
    primary.wait_for(replica)
    for server in (primary, replica):
        server.run("CONFIG", "SET", "maxmemory", "1")
    for words in (["ID", "new"], ["ID", "id:1"], ["PEEK"]):
        with pytest.raises(redis.exceptions.OutOfMemoryError):
            acquire(primary, "k", 1000, "1m", *words)
    for n in range(5):
        primary.clock.advance(ms=1000)
        assert renew(primary, "k", f"{70 + n}s", *ids) == [1] * 500
        assert renew(primary, "lock", "1m", "me") == [1]
    assert primary.state("k")["leases"][0] == ["id:0", 1, START_MS + 79_000]
    primary.clock.back(ms=HOUR)
    assert renew(primary, "k", "1m", *ids[:100]) == [1] * 100
    assert release(primary, "k", *ids[:400]) == 400
    assert release(primary, "lock", "me") == 1
    assert primary.state("k")["leases_count"] == 100
    check_equal(primary, replica)


def watched(server, *call):
    """Whether a transaction that watches k is aborted by the call."""
    transaction = server.client.pipeline()
    transaction.watch("k")
    server.run(*call)
    transaction.multi()
    transaction.set("other", "x")
    try:
        return transaction.execute() != [True]
    except redis.WatchError:
        return True


@pytest.mark.parametrize("seen", [told, watched])
def test_tracking_and_transactions_are_told_of_changes_only(server, seen):
    acquire(server, "k", 3, "1m", "IDS", 3, "a", "b", "c")
    assert not seen(server, ACQUIRE, "k", 3, "1m")
    assert not seen(server, ACQUIRE, "k", 9, "1m", "PEEK")
    assert not seen(server, RENEW, "k", "1m", "nobody")
    assert not seen(server, RELEASE, "k", "nobody")
    assert seen(server, ACQUIRE, "k", 4, "1m")
    assert seen(server, ACQUIRE, "k", 3, "1h", "ID", "a")
    assert seen(server, RENEW, "k", "2h", "nobody", "a")
    assert seen(server, RELEASE, "k", "nobody", "a")
    assert seen(server, RELEASE, "k", "b", "c")


def test_events_for_those_who_watch_the_keyspace(server):
    server.run("CONFIG", "SET", "notify-keyspace-events", "KEdg")
    listener = server.client.pubsub()
    listener.psubscribe("__keyevent@0__:*")
    listener.get_message(timeout=5)
    for words in ["ACQUIRE k 2 1m ID a", "ACQUIRE k 2 1m IDS 3 a b c UPTO", "ACQUIRE k 2 1m", "ACQUIRE k 2 1m PEEK",
                  "RENEW k 1m a b c", "RENEW k 1m c", "RELEASE k c", "RELEASE k a", "RELEASE k b a"]:  # fmt: skip
        server.run(*f"RL.{words}".split())
    server.run("SET", "end", "x")
    server.run("DEL", "end")
    seen = []
    while ("del", "end") not in seen:
        message = listener.get_message(timeout=5)
        seen.append((message["channel"].split(":")[1], message["data"]))
    server.run("CONFIG", "SET", "notify-keyspace-events", "")
    events = ["rl.granted", "rl.granted", "rl.refused", "rl.renewed", "rl.released", "rl.released", "del"]
    assert seen[:-1] == [(event, "k") for event in events]


def test_info_counts_calls_and_units(servers):
    server = servers()
    server.clock.freeze()
    for words in ["ID a COST 3", "ID a", "IDS 3 a b c UPTO", "COST 2", "COST 9 UPTO", "PEEK"]:
        acquire(server, "k", 5, "1m", *words.split())
    info = server.client.info("ratelimit")["ratelimit_rl.acquire"]
    assert (info["granted_calls"], info["refused_calls"]) == (3, 2)


def test_expiry_is_when_the_last_lease_ends_or_little_later(server):
    server.clock.release()
    for lease, last_ms in [("90s", 90_000), ("1h", HOUR), ("1m", HOUR)]:
        acquire(server, "k", 5, lease, "ID", lease)
        assert last_ms - 10_000 <= server.run("PTTL", "k") <= last_ms + last_ms // 16
    assert renew(server, "k", "2h", "90s") == [1]
    assert server.run("PTTL", "k") > 2 * HOUR - 10_000


def test_a_key_really_expires(server):
    server.clock.release()
    acquire(server, "k", 1, "20ms", "ID", "a")
    until(lambda: server.run("EXISTS", "k") == 0, "the key to expire", seconds=5)
    assert renew(server, "k", "20ms", "a") == [0]
    assert acquire(server, "k", 1, "20ms")[0] == 1


def test_active_defragmentation_does_no_harm(server):
    try:
        server.run("CONFIG", "SET", "activedefrag", "yes")
    except redis.ResponseError:
        pytest.skip("this server cannot defragment")
    ids = [f"id:{n}" for n in range(1000)]
    acquire(server, "k", 1000, "1m", "IDS", 1000, *ids)
    server.run("CONFIG", "SET", "activedefrag", "no")
    assert renew(server, "k", "2m", *ids) == [1] * 1000


# ---- many leases

MANY = 100_000


def fill(server, key, count, id_len=24, lease="10m"):
    """So many leases with ids of this length, as a stream of calls would leave them: ends in no order of ids."""
    ids = [f"{n * 0x9E3779B97F4A7C15 % 16**id_len:0{id_len}x}" for n in range(count)]
    pipeline = server.client.pipeline(transaction=False)
    for n in range(0, count, 500):
        some = ids[n : n + 500]
        pipeline.execute_command("RL.DEBUG", "CLOCK", START_US + n * 1000)
        pipeline.execute_command(ACQUIRE, key, LIMIT_MAX, lease, "IDS", len(some), *some)
    pipeline.execute()
    server.clock.now_us = START_US + n * 1000
    assert server.state(key)["leases_count"] == count
    return ids


def microseconds(server, key, ids, seed):
    """Inside of the commands, per call, each with one id. Every renewal moves an end."""
    random = Random(seed)
    server.run("CONFIG", "RESETSTAT")
    pipeline = server.client.pipeline(transaction=False)
    for n in range(200):
        pipeline.execute_command(ACQUIRE, key, LIMIT_MAX, f"{random.randrange(60, 1200)}s", "ID", f"new:{seed}:{n}")
        pipeline.execute_command(RENEW, key, f"{(seed + 5) * 200 + n}s", random.choice(ids))
        pipeline.execute_command(RELEASE, key, f"new:{seed}:{random.randrange(n + 1)}")
    pipeline.execute()
    stats = server.client.info("commandstats")
    return [stats[f"cmdstat_{name}"]["usec_per_call"] for name in (ACQUIRE, RENEW, RELEASE)]


def test_a_call_takes_no_longer_among_many_leases(server):
    few, many = fill(server, "few", 100), fill(server, "many", MANY)
    best = {}
    for seed, (key, ids) in enumerate([("few", few), ("many", many)] * 20):  # short, as others use the machine too
        now = microseconds(server, key, ids, seed)
        best[key] = [min(pair) for pair in zip(now, best.get(key, now))]
    for command, at_few, at_many in zip((ACQUIRE, RENEW, RELEASE), best["few"], best["many"]):
        print(command, at_few, at_many)
        assert at_many < 6 * at_few, (command, best)


def test_a_huge_limit(server):
    """A million units: one lease of all, or 100,000 leases; the listing is bounded, the count is not."""
    assert acquire(server, "k", LIMIT_MAX, "1m", "ID", "all", "COST", LIMIT_MAX)[:3] == [LIMIT_MAX, LIMIT_MAX, 0]
    assert acquire(server, "k", LIMIT_MAX, "1m") == [0, LIMIT_MAX, 0, 60000, 60000, []]
    assert release(server, "k", "all") == 1
    ids = fill(server, "many", MANY)
    state = server.state("many", "COST", LIMIT_MAX)
    assert (state["used"], state["leases_count"], len(state["leases"])) == (MANY, MANY, LISTED)
    assert state["leases"] == sorted(state["leases"], key=lambda lease: (lease[2], lease[0]))
    assert state["wait_ms"] == state["reset_ms"] == 600_000
    assert {lease[0] for lease in state["leases"]} < set(ids[:500]), "those that end first"
    server.clock.advance(ms=600_000 - 1)
    assert server.state("many")["leases_count"] == 500, "all ended by themselves but the last"
    server.clock.advance(ms=1)
    assert server.state("many") is None


def test_many_leases_that_end_at_once_do_not_stop_the_server(server):
    fill(server, "k", MANY)
    for n in range(5):
        server.run("COPY", "k", f"copy:{n}")
    server.clock.advance(ms=600_000 - 1)
    took_us = []
    for n in range(5):
        server.run("CONFIG", "RESETSTAT")
        assert acquire(server, f"copy:{n}", LIMIT_MAX, "10m")[:3] == [1, LIMIT_MAX, LIMIT_MAX - 501]
        took_us.append(server.client.info("commandstats")[f"cmdstat_{ACQUIRE}"]["usec"])
    assert min(took_us) < 2000, took_us


def bytes_per_lease_at_most(id_len):
    """What docs/commands/rl.acquire.md promises from 100 leases on."""
    return 45 + 1.25 * id_len


@pytest.mark.skipif(bool(PRELOAD), reason="a sanitizer's allocator takes more")
@pytest.mark.parametrize("id_len", [8, 24, 36, 128])
@pytest.mark.parametrize("count", [100, 1000, MANY])
def test_bytes_per_lease(server, count, id_len):
    ids = fill(server, "k", count, id_len)
    fresh = server.run("MEMORY", "USAGE", "k") / count
    random = Random(1)
    for _ in range(max(count // 500, 5)):  # in no order
        renew(server, "k", f"{random.randrange(600, 9999)}s", *random.sample(ids, min(count, 500)))
    renewed = server.run("MEMORY", "USAGE", "k") / count
    print(f"{count} leases, ids of {id_len}: {fresh:.1f} bytes each, {renewed:.1f} when renewed in no order")
    assert max(fresh, renewed) <= bytes_per_lease_at_most(id_len)


@pytest.mark.skipif(bool(PRELOAD), reason="a sanitizer's allocator takes more")
def test_a_lock_is_small(server):
    acquire(server, "k", 1, "1m", "ID", "x" * 24)
    assert server.run("MEMORY", "USAGE", "k") < 200


def test_the_memory_of_what_has_ended_is_given_back(server):
    fill(server, "k", 10_000, lease="10s")
    acquire(server, "k", LIMIT_MAX, "366d", "ID", "long")
    server.clock.advance(ms=10_000)
    for _ in range(500):
        renew(server, "k", "366d", "long")
    assert server.run("MEMORY", "USAGE", "k") < 300


# ---- calls that are wrong

X129 = "x" * (ID_MAX + 1)
BAD_LIMITS = ["", "0", "-1", "+1", "1.5", "x", "1000001", "9223372036854775808", "1 ", "1e3", b"\xff"]
BAD_LEASES = [("", "unit"), ("5", "unit"), ("s", "number"), ("-5s", "number"), ("1.5s", "number"), ("5x", "unit"),
              ("0s", "1ms"), ("367d", "366d"), ("9223372036854775808ms", "366d"), (b"\xffs", "unit")]  # fmt: skip
BAD_COSTS = ["0", "-1", "1.5", "", "x", "1000000000001", "9223372036854775808"]


def table():
    """Rows of: the call, the error's prefix, what its message must contain."""
    yield from (([ACQUIRE, "k", limit, "1m"], "ERR", ("limit", "1 to 1000000")) for limit in BAD_LIMITS)
    for lease, what in BAD_LEASES:
        yield [ACQUIRE, "k", "5", lease], "ERR", ("lease", what)
        yield [RENEW, "leases", lease, "a"], "ERR", ("lease", what)
    for cost in BAD_COSTS:
        yield [ACQUIRE, "k", "5", "1m", "COST", cost], "ERR", "COST"
    for n in ("0", "-1", "x", "1.5", "", "1025", "9223372036854775808"):
        yield [ACQUIRE, "k", "5", "1m", "IDS", n, "a", "b"], "ERR", ("IDS", "1 to 1024")
    for option in ("COST", "ID", "IDS"):
        yield [ACQUIRE, "k", "5", "1m", option], "ERR", (option, "needs a value")
    yield [ACQUIRE, "k", "5", "1m", "IDS", "3", "a", "b"], "ERR", ("id", "needs a value")
    for one in ("", X129, b"\x00" * 129, "x" * 100_000):
        yield [ACQUIRE, "k", "5", "1m", "ID", one], "ERR", ("ID", "1 to 128 bytes")
        yield [ACQUIRE, "k", "5", "1m", "IDS", "2", "a", one], "ERR", ("id", "1 to 128 bytes")
        yield [RENEW, "leases", "1m", "a", one], "ERR", ("id", "1 to 128 bytes")
        yield [RELEASE, "leases", "a", one], "ERR", ("id", "1 to 128 bytes")
    for ids in (["a", "a"], ["a", "b", "c", "b"], ["x" * 128, "y", "x" * 128], [*map(str, range(1000)), "7"]):
        yield [ACQUIRE, "k", "5000", "1m", "IDS", str(len(ids)), *ids], "ERR", ("IDS", "different")
    too_many = [str(n) for n in range(IDS_MAX + 1)]
    yield [RENEW, "leases", "1m", *too_many], "ERR", ("id", "1024")
    yield [RELEASE, "leases", *too_many], "ERR", ("id", "1024")
    for words in (["ID", "a", "IDS", "1", "b"], ["IDS", "1", "b", "ID", "a"]):
        yield [ACQUIRE, "k", "5", "1m", *words], "ERR", ("ID", "IDS")
    for words in (["IDS", "2", "a", "b", "COST", "1"], ["COST", "2", "IDS", "1", "a"]):
        yield [ACQUIRE, "k", "5", "1m", *words], "ERR", ("COST", "IDS")
    for words in (["ID", "a"], ["IDS", "1", "a"], ["COST", "1"], ["PEEK"], ["UPTO"]):
        yield [ACQUIRE, "k", "5", "1m", *words, *words], "ERR", (words[0], "twice")
    for word in ("FORCE", "REFUND", "KEEP", "BURST", "a", "", "\x00", b"\xff", "ID\x00", "x" * 1000, "%s%n"):
        yield [ACQUIRE, "k", "5", "1m", word, "1"], "ERR", ("option", "ID", "IDS", "COST", "PEEK", "UPTO")
    for call in ([ACQUIRE], [ACQUIRE, "k"], [ACQUIRE, "k", "5"], [RENEW], [RENEW, "k"], [RENEW, "k", "1m"],
                 [RELEASE], [RELEASE, "k"]):  # fmt: skip
        yield call, "ERR", "wrong number of arguments"
    for key in ("string", "other"):
        for call in ([ACQUIRE, key, "5", "1m"], [ACQUIRE, key, "5", "1m", "PEEK"], [RENEW, key, "1m", "a"],
                     [RELEASE, key, "a"]):  # fmt: skip
            yield call, "WRONGTYPE", "wrong kind of value"
    for call in (
        ["RL.TOKENBUCKET", "leases", "5/m"],
        ["RL.QUOTA", "leases", "5/day", "PEEK"],
        ["RL.HISTORY", "leases"],
    ):
        yield call, "WRONGTYPE", "wrong kind of value"
    yield [ACQUIRE, "string", "5", "1"], "ERR", "lease"  # arguments come before keys
    yield [RENEW, "string", "1", "a"], "ERR", "lease"
    yield [RELEASE, "string", X129], "ERR", "id"
    yield ["RL.STATE", "leases", "COST", "0"], "ERR", "COST"


ROWS = list(table())


@pytest.mark.parametrize("call, prefix, needles", ROWS, ids=map(label, ROWS))
def test_an_error_names_the_argument_and_changes_nothing(server, call, prefix, needles):
    acquire(server, "leases", 5, "1h", "ID", "a")
    server.run("RL.TOKENBUCKET", "other", "10/h")
    server.run("SET", "string", "x")
    check_refused(server, call, prefix, needles)
