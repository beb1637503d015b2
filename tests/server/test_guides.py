"""The guides, played: a day of the central bank's buckets and weeks of tiers, against small exact models.

What is played is what the guides say: their policies and their Python.
"""

import heapq
import json
import math
from fractions import Fraction
from random import Random

import pytest
from harness import START_US, pairs
from test_docs import ROOT, blocks, start_anew

GUIDES = ROOT / "docs" / "guides"
SECOND_US = 1_000_000
DAY_US = 86_400 * SECOND_US


@pytest.fixture(autouse=True)
def anew(server):
    start_anew(server)


def play(server, page):
    """Sets the policies of a guide, and answers what its Python defines."""
    for block in blocks(GUIDES / page, "redis"):
        for line in block.lines:
            if line.startswith("> RL.POLICY SET ") and "SHADOW" not in line:
                assert server.run(*line[2:].split()) == "OK"
    (code,) = blocks(GUIDES / page, "python")
    names = {}
    exec(compile(code.text(), code.where, "exec"), names)
    names["r"] = server.client
    return names


class Bucket:
    """Tokens that come back continuously. What is owed may exceed the capacity: that is a debt."""

    def __init__(self, clock, capacity, per_minute):
        self.clock = clock
        self.set(capacity, per_minute)
        self.written, self.at_us = Fraction(0), START_US

    def set(self, capacity, per_minute):
        """As if it had been so at the last write; what is used stays used."""
        self.capacity, self.per_us = capacity, Fraction(per_minute, 60 * SECOND_US)

    def owed(self):
        return max(Fraction(0), self.written - (self.clock.now_us - self.at_us) * self.per_us)

    def move(self, cost):
        """A charge, or a refund, of the whole units owed at most. Answers what was moved."""
        owed = self.owed()
        if cost := max(cost, -math.floor(owed)):
            self.written, self.at_us = owed + cost, self.clock.now_us
        return cost

    def remaining(self):
        return math.floor(self.capacity - self.owed())

    def wait_ms(self):
        """Until one token is there."""
        return max(0, math.ceil((self.owed() + 1 - self.capacity) / self.per_us / 1000))

    def reset_ms(self):
        return math.ceil(self.owed() / self.per_us / 1000)


USERS = {"pf": (100, 2, {200: 1, 404: 20, "paid": -1}), "pj": (1000, 20, {200: 1, 404: 20, "paid": -2})}
CATEGORIES = {
    "a": (50_000, 25_000),
    "b": (40_000, 20_000),
    "c": (30_000, 15_000),
    "d": (16_000, 8_000),
    "e": (5_000, 2_500),
    "f": (500, 250),
    "g": (250, 25),
    "h": (50, 2),
}
PARTICIPANT_COSTS = {200: 1, 404: 3, "paid": -1}


class Directory:
    """Participants with their users, played by the guide's functions and by the model at once."""

    def __init__(self, server, guide, categories):
        self.server = server
        self.guide = guide
        self.categories = categories
        self.buckets = {}
        for psp, category in categories.items():
            self.add(f"{{{psp}}}", f"dict-psp-{category}", PARTICIPANT_COSTS, *CATEGORIES[category])
        self.lookups = self.refusals = self.payments = self.lowest = 0

    def add(self, key, policy, costs, *limit):
        self.buckets[key] = Bucket(self.server.clock, *limit)
        self.buckets[key].policy, self.buckets[key].costs = policy, costs

    def keys(self, psp, user, kind, version):
        key = f"{{{psp}}}:{user}:{version}"
        if key not in self.buckets:
            *limit, costs = USERS[kind]
            self.add(key, f"dict-{kind}", costs, *limit)
        return key, f"{{{psp}}}"

    def settle(self, keys, label):
        for key in keys:
            self.buckets[key].move(self.buckets[key].costs.get(label, 0))
            self.lowest = min(self.lowest, self.buckets[key].remaining())
        self.check(*keys)

    def check(self, *keys):
        asked = self.server.client.pipeline(transaction=False)
        for key in keys:
            asked.execute_command("RL.TAKE", key, self.buckets[key].policy, "PEEK")
        for key, reply in zip(keys, asked.execute()):
            bucket, wait_ms = self.buckets[key], self.buckets[key].wait_ms()
            passes = int(wait_ms == 0)
            assert reply[:5] == [passes, bucket.capacity, bucket.remaining(), wait_ms, bucket.reset_ms()], key

    def lookup(self, psp, user, kind, version, status):
        keys = self.keys(psp, user, kind, version)
        wait_ms = max(self.buckets[key].wait_ms() for key in keys)
        asked = []
        answer = self.guide["lookup"](psp, self.categories[psp], user, kind, version, lambda: asked.append(1) or status)
        if wait_ms > 0:
            self.refusals += 1
            assert not asked and answer == (429, {"Retry-After": str(math.ceil(wait_ms / 1000))})
            return False
        self.lookups += 1
        assert asked and answer == (status, {})
        self.settle(keys, status)
        return True

    def pay(self, psp, user, kind, version):
        self.payments += 1
        self.guide["payment_sent"](psp, self.categories[psp], user, kind, version)
        self.settle(self.keys(psp, user, kind, version), "paid")

    def promote(self, psp, category):
        bucket = self.buckets[f"{{{psp}}}"]
        bucket.set(*CATEGORIES[category])
        self.categories[psp], bucket.policy = category, f"dict-psp-{category}"


def test_a_day_of_the_directory(server):
    random = Random(20_240_501)
    guide = play(server, "pix-dict.md")
    bank = Directory(server, guide, {"11111111": "f", "22222222": "g", "33333333": "h"})
    people = [("11111111", f"person{n}", "pf") for n in range(25)]
    people += [("22222222", f"person{n}", "pf") for n in range(8)]
    people += [("11111111", f"shop{n}", "pj") for n in range(5)]
    people += [("33333333", "person", "pf")]
    scanners = [("11111111", "scanner", "pf"), ("22222222", "scanner", "pj"), ("33333333", "scanner", "pf")]
    due = []
    now_us = START_US
    calls = 0
    while now_us < START_US + DAY_US:
        now_us += random.randrange(1, 50 * SECOND_US)
        while due and due[0][0] <= now_us:
            at_us, _, payer = heapq.heappop(due)
            server.clock.freeze(at_us)
            bank.pay(*payer)
        server.clock.freeze(now_us)
        if calls > 2000 and bank.categories["22222222"] == "g":
            bank.promote("22222222", "e")
        scans = random.random() < 0.35
        who = random.choice(scanners if scans else people)
        payer = (*who, random.choice(["v1", "v2"]))
        for _ in range(random.choice([1, 1, 1, 4]) if scans else 1):
            calls += 1
            status = random.choices([200, 404, 500, 400], [1, 8, 1, 1] if scans else [20, 2, 1, 1])[0]
            if bank.lookup(*payer, status) and status == 200 and random.random() < 0.7:
                heapq.heappush(due, (now_us + random.randrange(120 * SECOND_US), calls, payer))
    assert bank.lookups > 3000 and bank.refusals > 500 and bank.payments > 1000
    assert bank.lowest < -15, "debts, which time paid back"
    bank.check(*bank.buckets)


def test_waits_of_the_directory_are_exact(server):
    """After Retry-After's wait_ms a lookup passes, a millisecond earlier it does not, in debt too."""
    random = Random(3)
    play(server, "pix-dict.md")
    for n, (kind, category) in enumerate([("pf", "h"), ("pf", "a"), ("pj", "g"), ("pj", "h")] * 5):
        subjects = [f"{{{n}}}:u:v1", f"dict-{kind}", f"{{{n}}}", f"dict-psp-{category}"]
        replies = server.run("RL.TAKEALL", 2, *subjects, "PEEK")
        for _ in range(200):
            replies = server.run("RL.TAKEALL", 2, *subjects, "PEEK")
            if not all(reply[0] for reply in replies):
                break
            server.run("RL.TAKEALL", 2, *subjects, "OUTCOME", random.choice([200, 404, 404]))
            server.clock.advance(us=random.randrange(SECOND_US))
        wait_ms = max(reply[3] for reply in replies)
        assert wait_ms > 0 and [reply[0] for reply in replies] == [0, 0]
        server.clock.advance(ms=wait_ms - 1)
        assert [reply[0] for reply in server.run("RL.TAKEALL", 2, *subjects, "PEEK")] == [0, 0]
        server.clock.advance(ms=1)
        assert [reply[0] for reply in server.run("RL.TAKEALL", 2, *subjects, "PEEK")] == [1, 1]


@pytest.mark.parametrize("category", CATEGORIES)
def test_categories_are_policies(server, category):
    guide = play(server, "pix-dict.md")
    capacity, per_minute = CATEGORIES[category]
    bank = Directory(server, guide, {"12345678": category})
    bank.check("{12345678}")
    server.run("RL.TAKE", "{12345678}", f"dict-psp-{category}", "COST", capacity)
    bank.buckets["{12345678}"].move(capacity)
    bank.check("{12345678}")
    assert not bank.lookup("12345678", "ana", "pf", "v1", 200), "the participant's bucket is empty"
    server.clock.advance(ms=60_000)
    assert bank.buckets["{12345678}"].remaining() == per_minute
    assert bank.lookup("12345678", "ana", "pf", "v1", 404)
    bank.pay("12345678", "ana", "pf", "v1")


def test_another_category_keeps_what_is_used(server):
    bank = Directory(server, play(server, "pix-dict.md"), {"12345678": "h"})
    for n in range(13):
        assert bank.lookup("12345678", f"user{n}", "pf", "v2", 404)
    assert bank.buckets["{12345678}"].remaining() == 11
    bank.promote("12345678", "c")
    bank.check("{12345678}")
    assert bank.lookup("12345678", "user0", "pf", "v2", 200)
    assert bank.buckets["{12345678}"].remaining() == 29_960


def test_simple_policies_count_all_but_a_500(server):
    play(server, "pix-dict.md")
    random = Random(8)
    bucket, key = Bucket(server.clock, 36_000, 1_200), "{12345678}:entries-write"
    for _ in range(2000):
        server.clock.advance(us=random.randrange(40_000))
        status = random.choice([200, 201, 400, 403, 404, 429, 500, 503])
        moved = bucket.move(0 if status == 500 else 1)
        reply = server.run("RL.TAKE", key, "dict-entries-write", "OUTCOME", status)
        assert reply[:5] == [moved, 36_000, bucket.remaining(), 0, bucket.reset_ms()]
    assert bucket.remaining() < 35_900


def test_a_token_taken_before_costs_the_same_in_the_end(server):
    play(server, "pix-dict.md")
    for label, user, participant in ((200, 1, 1), (404, 20, 3), (500, 0, 0), (400, 0, 0)):
        subjects = [f"{{p}}:{label}:v1", "strict-pf", f"{{p}}:{label}", "strict-psp-f"]
        assert [reply[0] for reply in server.run("RL.TAKEALL", 2, *subjects)] == [1, 1]
        replies = server.run("RL.TAKEALL", 2, *subjects, "OUTCOME", label)
        assert [reply[2] for reply in replies] == [100 - user, 500 - participant]


PLANS = {
    "free": {"requests": 100, "tokens": 50_000, "cost": 500},
    "basic": {"requests": 1_000, "tokens": 1_000_000, "cost": 5_000},
    "pro": {"requests": 10_000, "tokens": 20_000_000, "cost": 50_000},
    "enterprise": {"requests": 1_000_000, "tokens": 1_000_000_000, "cost": 5_000_000},
}


def used(server, key, policy):
    rules = pairs(pairs(server.run("RL.STATE", key, "POLICY", policy))["rules"])
    return {name: pairs(rule)["used"] for name, rule in rules.items()}


class Failure(Exception):
    pass


class User:
    """One user of the tiers. Days begin at midnight, months on the 14th day after the start: the 1st of December."""

    MONTHS_US = 1_701_388_800 * SECOND_US

    def __init__(self, server, guide, name):
        self.server, self.guide, self.name = server, guide, name
        self.plan = "free"
        self.used = dict.fromkeys(PLANS["free"], 0)
        self.day = self.month = 0
        self.granted = self.refused = self.failed = 0

    def forget_what_is_over(self):
        now_us = self.server.clock.now_us
        day, month = now_us // DAY_US, now_us >= self.MONTHS_US
        if day != self.day:
            self.used["requests"] = self.used["tokens"] = 0
        if month != self.month:
            self.used["cost"] = 0
        self.day, self.month = day, month

    def call(self, estimate, really):
        """really is None where the model fails."""
        self.forget_what_is_over()
        limits = PLANS[self.plan]
        asked = {"requests": 1, "tokens": estimate[0], "cost": estimate[1]}
        lacking = [rule for rule in limits if self.used[rule] + asked[rule] > limits[rule]]

        def call_model(prompt):
            assert prompt == "hello"
            if really is None:
                raise Failure
            return ("answer", *really)

        def play():
            return self.guide["complete"](self.name, self.plan, "hello", call_model, lambda prompt: estimate)

        if lacking:
            self.refused += 1
            status, rule, wait_ms = play()
            assert (status, rule in lacking, wait_ms > 0) == (429, True, True)
        elif really is None:
            self.failed += 1
            with pytest.raises(Failure):
                play()
        else:
            self.granted += 1
            assert play() == (200, "answer", 0)
            self.used["requests"] += 1
            self.used["tokens"] += really[0]
            self.used["cost"] += really[1]
        assert used(self.server, self.name, self.plan) == self.used


def test_weeks_of_tiers(server):
    random = Random(17)
    guide = play(server, "tiers-and-quotas.md")
    users = [User(server, guide, f"user:{n}") for n in range(6)]
    for _ in range(2500):
        server.clock.advance(ms=random.randrange(1_500_000))
        user = random.choice(users)
        if random.random() < 0.01:
            user.plan = random.choice(list(PLANS))
        tokens = random.randrange(1, 20_000)
        really = None if random.random() < 0.05 else (random.randrange(1, 30_000), random.randrange(1, 30))
        user.call((tokens, random.randrange(1, 20)), really)
    totals = [sum(getattr(user, name) for user in users) for name in ("granted", "refused", "failed")]
    assert totals[0] > 800 and totals[1] > 500 and totals[2] > 30, totals
    assert server.clock.now_us > User.MONTHS_US, "a month has ended"


@pytest.mark.parametrize("plans", [["basic", "pro", "enterprise"], ["enterprise", "free"], ["pro", "basic", "free"]])
def test_an_upgrade_keeps_what_is_used(server, plans):
    play(server, "tiers-and-quotas.md")
    server.run("RL.TAKE", "u", "free", "COST", "requests=100,tokens=40000,cost=499")
    assert server.run("RL.TAKE", "u", "free", "COST", "requests=1")[:3] == [0, 100, 0]
    expected = {"requests": 100, "tokens": 40_000, "cost": 499}
    for plan in plans:
        assert used(server, "u", plan) == expected, "to be seen before"
        passes = int(expected["requests"] < PLANS[plan]["requests"])
        assert server.run("RL.TAKE", "u", plan, "COST", "requests=1")[0] == passes
        expected["requests"] += passes
        assert used(server, "u", plan) == expected


def test_the_difference_is_refunded_or_forced(server):
    guide = play(server, "tiers-and-quotas.md")
    server.run("RL.TAKE", "u", "free", "COST", "requests=1,tokens=4000,cost=8")
    guide["settle"]("u", "free", {"tokens": -2800, "cost": 2})
    assert used(server, "u", "free") == {"requests": 1, "tokens": 1200, "cost": 10}
    guide["settle"]("u", "free", {"tokens": 60_000, "cost": 0})
    assert used(server, "u", "free") == {"requests": 1, "tokens": 61_200, "cost": 10}, "over, since the work is done"
    reply = server.run("RL.TAKE", "u", "free", "COST", "requests=1,tokens=1,cost=1")
    assert reply == [0, 50_000, -11_200, 6_400_000, 6_400_000, "tokens"]
    server.clock.advance(ms=6_400_000)
    guide["settle"]("u", "free", {"tokens": -500, "cost": -4})
    assert used(server, "u", "free") == {"requests": 0, "tokens": 0, "cost": 6}, "nothing of a day that is over"


def test_the_alert_of_the_guide(server):
    play(server, "tiers-and-quotas.md")
    listener = server.client.pubsub()
    listener.subscribe("rl:alerts")
    listener.get_message(timeout=5)
    server.run("RL.TAKE", "user:42", "basic", "COST", "cost=7")
    server.run("RL.TAKE", "user:42", "free", "COST", "cost=400", "FORCE")
    (shown,) = blocks(GUIDES / "tiers-and-quotas.md", "json")
    assert json.loads(listener.get_message(timeout=5)["data"]) == json.loads(shown.text())
    listener.close()
