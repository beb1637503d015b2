"""RL.TAKE against a model: several rules in one key, all or none, under policies and scales that change.

The model of a rule is that of its plain limiter; here is only what a policy adds: which state a rule finds, what binds,
how long to wait where limits change by themselves, what is written. Then payloads that nobody wrote.
"""

from copy import copy
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil
from random import Random

import pytest
import redis
from harness import START_US, pairs, until
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from model import Ask, Beyond, Limit, TokenBucket, count
from models_windows import NOTHING, Fixed, FixedLimit, Quota, QuotaLimit, Sliding, SlidingLimit
from test_persistence import mutated, sealed
from test_policy import clear, with_checksum

DAY_US = 86_400_000_000
FOREVER = 2**62
MODELS = {"tokenbucket": TokenBucket, "fixed": Fixed, "sliding": Sliding, "quota": Quota}
BOUNDS = ("would go above", "ten years")

# ---- the model


def part(n, percent):
    """Floored, but nothing only of nothing."""
    return max(n * percent // 100, 1) if n and percent else 0


@dataclass(frozen=True)
class Rule:
    name: str
    kind: str
    limit: object
    leaky: bool = False
    keep_ms: int = 0

    def words(self):
        if self.kind == "tokenbucket":
            rate = f"{self.limit.count}/{self.limit.period_us // 1000}ms"
            words = ["LEAKY" if self.leaky else "TOKENBUCKET", rate, "BURST", self.limit.burst]
        else:
            words = [self.kind.upper(), *self.limit.words()]
        return [*words, "AS", self.name, *(["KEEP", f"{self.keep_ms}ms"] if self.keep_ms else [])]

    def scaled(self, percent):
        if self.kind != "tokenbucket":
            return replace(self.limit, count=part(self.limit.count, percent))
        whole = Limit(self.limit.count * percent, self.limit.period_us * 100, 0) if percent else self.limit
        return replace(whole, burst=part(self.limit.burst, percent)) if percent != 100 else self.limit


@dataclass(frozen=True)
class Policy:
    name: str
    rules: tuple
    percent: int = 100
    until_ms: int = 0

    def percent_at(self, at_us):
        return self.percent if at_us // 1000 < self.until_ms else 100


def is_ahead(model, now_us):
    if isinstance(model, TokenBucket):
        return model.state is not None and model.state.at_us > now_us
    held = model.alive(now_us // 1000)
    return held is not None and held.uses is not NOTHING and model.ahead(held.limit, held.uses, now_us // 1000)


def repaired(model, now_us):
    """After a step back of the clock: moved to now, under its own limit."""
    model, now_ms = copy(model), now_us // 1000
    if is_ahead(model, now_us):
        if isinstance(model, TokenBucket):
            state = model.state
            model._write(state.limit, state.used, now_us, count(state, 0, 0, now_us))
        else:
            held = model.held
            model._hold(held.limit, model.moved(held.limit, held.uses, now_ms), count(held, 0, 0, now_us), now_ms)
    return model


def is_alive(model, now_us):
    return model.alive(now_us if isinstance(model, TokenBucket) else now_us // 1000) is not None


def matched(held, rules):
    """Which of the held states each rule takes over: by name, else by kind in order."""
    left = list(held)

    def claim(fits):
        found = next((entry for entry in left if fits(*entry)), None)
        if found:
            left.remove(found)
        return found and found[2]

    named = [claim(lambda name, kind, _, r=rule: (name, kind) == (r.name, r.kind)) for rule in rules]
    return [
        model or claim(lambda _, kind, __, r=rule: kind == r.kind) or MODELS[rule.kind]()
        for rule, model in zip(rules, named)
    ]


class Key:
    """What a key holds: the name of its policy, and of each rule its name, its kind and its state."""

    def __init__(self):
        self.policy = None
        self.held = []

    def states(self, policy):
        return matched(self.held, policy.rules)

    def wait(self, policy, seen, costs, now_us):
        """The wait, and the index of the rule that waits longest; limits may change once, when the scale ends."""

        def longest(at_us):
            percent, found = policy.percent_at(at_us), None
            for i, cost in costs.items():
                reply = copy(seen[i]).call(policy.rules[i].scaled(percent), Ask(cost, peek=True), at_us)
                wait = 0 if reply[0] else FOREVER if reply[3] == -1 else reply[3]
                if found is None or wait > found[0]:
                    found = wait, i
            return found

        wait_ms, binding = longest(now_us)
        ends_us = policy.until_ms * 1000
        if now_us // 1000 < policy.until_ms and now_us + wait_ms * 1000 >= ends_us:
            after_ms = ceil((ends_us - now_us) / 1000)
            wait_ms, binding = longest(now_us + after_ms * 1000)
            wait_ms += after_ms
        return (-1 if wait_ms >= FOREVER else wait_ms), binding

    def take(self, policy, mode, costs, peek, now_us, outcome=False):
        """costs: of the charged rules, by index; none: only look. The five integers and the name of the rule."""
        found, percent = self.states(policy), policy.percent_at(now_us)
        limits = [rule.scaled(percent) for rule in policy.rules]
        seen = [repaired(model, now_us) for model in found]

        def ask(i, **kwargs):
            return copy(seen[i]).call(limits[i], Ask(**kwargs), now_us)

        def least_left(replies):
            def left(i):
                _, limit, remaining, *_ = replies[i]
                return -FOREVER if limit == 0 else Fraction(remaining, limit)

            return min(replies, key=left)  # of equals the first

        if not costs:
            replies = {i: ask(i, mode="UPTO", peek=True) for i in range(len(limits))}
            binding = least_left(replies)
            return [0, *replies[binding][1:3], 0, replies[binding][4], policy.rules[binding].name]

        if mode == "UPTO":
            most = min(ask(i, cost=cost, mode="UPTO", peek=True)[0] for i, cost in costs.items())
            costs, mode = dict.fromkeys(costs, max(most, 1)), "TAKE"
        replies = {i: ask(i, cost=cost, mode=mode) for i, cost in costs.items()}
        refused = mode == "TAKE" and any(reply[0] == 0 for reply in replies.values())
        if refused:
            wait_ms, binding = self.wait(policy, seen, costs, now_us)
            reply = ask(binding, cost=costs[binding], peek=True)
            reply[0], reply[3] = 0, wait_ms
        else:
            binding = least_left(replies)
            reply = ask(binding, cost=costs[binding], mode=mode, peek=True) if peek else replies[binding]
            reply[3] = 0
            for i in costs:
                if mode == "REFUND":
                    reply[0] = max(reply[0], replies[i][0])
                elif policy.rules[i].leaky and not outcome:
                    state = seen[i].alive(now_us)
                    hold_ms = limits[i].wait_ms(state.used_at(now_us, limits[i])) if state else 0
                    reply[3] = max(reply[3], hold_ms)
        if not peek:
            self._carry_out(policy, mode, {} if refused else costs, replies, limits, found, costs, now_us)
        return [-reply[0] if outcome and mode == "REFUND" else reply[0], *reply[1:], policy.rules[binding].name]

    def _carry_out(self, policy, mode, taken, replies, limits, found, asked, now_us):
        if any(is_ahead(found[i], now_us) for i in asked):
            self.held = [(name, kind, repaired(model, now_us)) for name, kind, model in self.held]
            found = self.states(policy)
        if not any(replies[i][0] for i in taken):
            return
        for i, cost in taken.items():
            found[i] = copy(found[i])
            found[i].call(limits[i], Ask(cost, mode, keep_ms=policy.rules[i].keep_ms), now_us)
        alive = any(is_alive(model, now_us) for model in found)
        self.policy = policy.name
        self.held = [(rule.name, rule.kind, model) for rule, model in zip(policy.rules, found)] if alive else []

    def exists(self, now_us):
        return any(is_alive(model, now_us) for _, _, model in self.held)

    def describe(self, policy, cost, now_us):
        """RL.STATE."""
        found, percent, rules = self.states(policy), policy.percent_at(now_us), {}
        for i, (rule, model) in enumerate(zip(policy.rules, found)):
            limit, seen = rule.scaled(percent), repaired(model, now_us)
            _, units, remaining, _, reset_ms = copy(seen).call(limit, Ask(cost, peek=True), now_us)
            wait_ms, _ = self.wait(policy, {i: seen}, {i: cost}, now_us)
            rules[rule.name] = {
                "kind": rule.kind, "rule": rule.limit.rule(), "limit": units, "remaining": remaining,
                "used": units - remaining, "wait_ms": wait_ms, "reset_ms": reset_ms,
            }  # fmt: skip
            state = model.alive(now_us if rule.kind == "tokenbucket" else now_us // 1000)
            if rule.kind == "quota":
                uses, _ = seen.now_under(limit, seen.alive(now_us // 1000), now_us // 1000)
                rules[rule.name].update(seen.details(limit, uses, units - remaining, now_us // 1000))
            if state and state.totals:
                rules[rule.name].update(granted=state.totals.granted, last_ms=state.totals.last_ms)
        return {"policy": policy.name, "percent": percent, "rules": rules}


# ---- what is asked

PERIODS = st.sampled_from([250, 1000, 7000, 60_000, 3_600_000])
COUNTS = st.integers(1, 12)
ZONES = ["UTC", "+05:45"]
FOR_MS = st.sampled_from([1, 700, 30_000, 4_000_000])
LIMITS = {
    "tokenbucket": st.builds(lambda n, ms, burst: Limit(n, ms * 1000, burst), COUNTS, PERIODS, COUNTS),
    "fixed": st.builds(FixedLimit, COUNTS, PERIODS, st.booleans()),
    "sliding": st.builds(SlidingLimit, COUNTS, PERIODS, st.sampled_from([0, 0, 0, 4])),
    "quota": st.builds(QuotaLimit, st.integers(0, 15), st.sampled_from(["hour", "day"]), st.sampled_from(ZONES)),
}  # fmt: skip
RULES = st.sampled_from(sorted(LIMITS)).flatmap(
    lambda kind: st.builds(
        Rule,
        st.sampled_from([kind, "a", "b", "c", "d"]),
        st.just(kind),
        LIMITS[kind],
        st.booleans() if kind == "tokenbucket" else st.just(False),
        st.sampled_from([0, 0, 0, 90_000]),
    )
)
SETS = st.lists(RULES, min_size=1, max_size=5, unique_by=lambda rule: rule.name).map(tuple)
LABELS = {"one": 1, "many": 4, "none": 0, "back": -1, "all": -99}
NEAR = st.sampled_from([-1_000_000, -1000, -1, 0, 1, 1000, 1_000_000])
STEPS = st.one_of(
    st.just(("us", 0)),
    st.tuples(st.sampled_from(["wait_ms", "reset_ms", "scale"]), NEAR),
    st.tuples(st.just("us"), st.one_of(st.integers(-5000, 5000), st.integers(-90_000_000, 90_000_000))),
    st.tuples(st.just("us"), st.integers(-3 * DAY_US, 3 * DAY_US)),
)
COST = st.one_of(st.just(1), st.integers(1, 6), st.integers(1, 30), st.just(10**12))
TAKES = st.tuples(
    st.just("take"),
    st.sampled_from(["TAKE", "TAKE", "TAKE", "FORCE", "UPTO", "REFUND", "OUTCOME"]),
    COST,
    st.lists(COST, min_size=5, max_size=5),
    st.sets(st.integers(0, 4)),  # none: all rules
    st.booleans(),
    st.sampled_from(sorted(LABELS)),
)
ACTIONS = st.one_of(
    *[TAKES] * 8,
    st.tuples(st.just("set"), SETS),
    st.tuples(st.just("scale"), st.sampled_from([0, 1, 29, 50, 100, 300]), FOR_MS),
)  # fmt: skip
TRAFFIC = st.lists(st.tuples(STEPS, st.sampled_from("ppq"), ACTIONS), min_size=1, max_size=25)


def amount(policy, mode, one, each, chosen, label):
    """The words, and what they charge each rule."""
    every = range(len(policy.rules))
    if mode == "OUTCOME":
        cost = LABELS[label]
        return ["OUTCOME", label], dict.fromkeys(every, abs(cost)) if cost else {}
    word = "REFUND" if mode == "REFUND" else "COST"
    picked = [i for i in every if i in chosen]
    if not picked:
        return [word, one], dict.fromkeys(every, one)
    costs = {i: one if mode == "UPTO" else each[i] for i in picked}
    return [word, ",".join(f"{policy.rules[i].name}={n}" for i, n in costs.items())], costs


def concrete(traffic, first):
    """Commands, each with where it goes and what is to be answered."""
    key, now_us, reply = Key(), START_US, [0] * 6
    policies = {}
    for name, rules in zip("pq", first):
        policies[name] = Policy(name, rules)
        yield "all", define(policies[name]), "OK"
    for (since, step_us), name, (what, *how) in traffic:
        policy = policies[name]
        since_us = {"us": 0, "wait_ms": max(reply[3], 0) * 1000, "reset_ms": reply[4] * 1000, "scale": 0}[since]
        now_us += step_us + since_us
        if since == "scale" and policy.until_ms:
            now_us = policy.until_ms * 1000 + step_us
        yield "all", ["RL.DEBUG", "CLOCK", now_us], "OK"
        if what == "set":
            policy = policies[name] = replace(policy, rules=how[0])
            yield "all", define(policy), "OK"
        elif what == "scale":
            policy = policies[name] = replace(policy, percent=how[0], until_ms=now_us // 1000 + how[1])
            yield "all", ["RL.POLICY", "SCALE", name, how[0], "FOR", f"{how[1]}ms"], "OK"
        else:
            mode, one, each, chosen, peek, label = how
            words, costs = amount(policy, mode, one, each, chosen, label)
            peek = peek and mode in ("TAKE", "UPTO")
            words += [mode] * (mode in ("FORCE", "UPTO")) + ["PEEK"] * peek
            outcome = mode == "OUTCOME"
            if outcome:
                mode = "REFUND" if LABELS[label] < 0 else "FORCE"
            try:
                answer = reply = key.take(policy, mode, costs, peek, now_us, outcome)
            except Beyond:
                answer = Beyond
            yield "key", ["RL.TAKE", "k", name, *words], answer
        cost = 1 + now_us % 7
        for asked, options in ((policies.get(key.policy), []), (policy, ["POLICY", name])):
            answer = None
            if options or key.exists(now_us):
                try:
                    answer = key.describe(asked, cost, now_us)
                except Beyond:
                    answer = Beyond
            yield "key", ["RL.STATE", "k", "COST", cost, *options], answer


def define(policy):
    outcomes = ",".join(f"{label}:{cost}" for label, cost in LABELS.items())
    return ["RL.POLICY", "SET", policy.name, *(w for rule in policy.rules for w in rule.words()), "OUTCOME", outcomes]


def as_map(reply):
    state = pairs(reply)
    return state and {**state, "rules": {name: pairs(rule) for name, rule in pairs(state["rules"]).items()}}


def check(nodes, node, traffic, first):
    for other in nodes:
        clear(other)
        other.execute_command("RL.DEBUG", "CLOCK", START_US)
    node.execute_command("DEL", "k")
    pipelines = {other: other.pipeline(transaction=False) for other in nodes}
    expected = list(concrete(traffic, first))
    for where, command, _ in expected:
        for other in nodes if where == "all" else [node]:
            pipelines[other].execute_command(*command)
    replies = {other: pipeline.execute(raise_on_error=False) for other, pipeline in pipelines.items()}[node]
    history = []
    for (_, command, answer), reply in zip(expected, replies):
        history.append(" ".join(map(str, command)))
        said = "\n".join(history)
        if answer is Beyond:
            assert isinstance(reply, redis.ResponseError) and any(text in str(reply) for text in BOUNDS), said
        elif command[0] == "RL.STATE" and not isinstance(reply, Exception):
            assert as_map(reply) == answer, said
        else:
            assert reply == answer, said


QUICK = (Phase.explicit, Phase.generate)  # a server makes shrinking slow, and what failed is told call by call


@settings(max_examples=100, phases=QUICK)
@given(TRAFFIC, st.tuples(SETS, SETS))
def test_every_field_is_that_of_the_model(one_server, traffic, first):
    check([one_server.client], one_server.client, traffic, first)


@settings(max_examples=10, phases=QUICK)
@given(traffic=TRAFFIC, first=st.tuples(SETS, SETS))
def check_in(db, traffic, first):
    check(db.nodes, db.node("k"), traffic, first)


def test_in_every_topology(db):
    check_in(db)
    db.clock.freeze(START_US)
    node, dump = db.node("k"), ["RL.POLICY", "DUMP"]
    known = node.execute_command(*dump, NEVER_DECODE=True)
    if db.replica:
        db.replica.execute_command("RL.DEBUG", "CLOCK", START_US)
        until(lambda: db.replica.execute_command(*dump, NEVER_DECODE=True) == known, "the replica's policies")
        db.replica.execute_command("RL.DEBUG", "CLOCK", "REAL")
    node.execute_command("DEBUG", *(["LOADAOF"] if db.topology == "aof" else ["RELOAD"]))
    assert node.execute_command(*dump, NEVER_DECODE=True) == known
    for other in db.nodes:
        clear(other)


# ---- payloads that nobody wrote

ALL_KINDS = (
    "FIXED 5/h TOKENBUCKET 9/h LEAKY 90/h BURST 7 AS l SLIDING 9/h QUOTA 9/day HISTORY 3 ALERT 50 KEEP 1d "
    "SLIDING 9/h SLOTS 3 AS s FIXED 9/d ALIGN AS f QUOTA 9/hour TZ +05:45 AS q OUTCOME a:2,b:-1,*:0 ADAPT cpu 9:40"
).split()


@pytest.fixture
def prepared(server):
    """A server that has a policy, a key that was used in two periods, and a clock that was stepped back since."""
    clear(server.client)
    server.run("RL.POLICY", "SET", "p", *ALL_KINDS)
    server.run("RL.POLICY", "SET", "other", "SLIDING", "4/h", "AS", "x", "QUOTA", "5/day", "AS", "y")
    server.run("RL.POLICY", "SCALE", "p", 60, "FOR", "2d")
    server.run("RL.LOAD", "cpu", 50, "FOR", "2d")
    server.run("RL.TAKE", "k", "p", "COST", 4, "FORCE")
    server.clock.advance(ms=86_400_000)
    server.run("RL.TAKE", "k", "p", "COST", 2)
    yield server
    clear(server.client)


def use(pipeline):
    pipeline.execute_command("RL.STATE", "k")
    pipeline.execute_command("RL.STATE", "k", "POLICY", "other")
    pipeline.execute_command("RL.HISTORY", "k", "RULE", "quota")
    pipeline.execute_command("MEMORY", "USAGE", "k")
    pipeline.execute_command("DEBUG", "DIGEST-VALUE", "k")
    pipeline.execute_command("COPY", "k", "copy", "REPLACE")
    pipeline.execute_command("RL.TAKE", "copy", "other")
    pipeline.execute_command("RL.TAKE", "k", "p", "PEEK")
    pipeline.execute_command("RL.TAKE", "k", "p", "OUTCOME", "b")
    pipeline.execute_command("RL.TAKEALL", 2, "k", "p", "copy", "p", "COST", "1,3")


def harmless_reply(reply):
    return not isinstance(reply, redis.ConnectionError)


@pytest.mark.parametrize("seed", range(2))
def test_mutated_keys(prepared, seed):
    random, raw = Random(seed), prepared.connect()
    body, accepted = raw.dump("k")[:-8], 0
    for _ in range(12):
        pipeline = raw.pipeline(transaction=False)
        pipeline.execute_command("RL.DEBUG", "CLOCK", random.choice([START_US, START_US + DAY_US, 0, 2**53 - 1]))
        for _ in range(25):
            pipeline.restore("k", 0, sealed(mutated(body, random)), replace=True)
            use(pipeline)
        replies = pipeline.execute(raise_on_error=False)
        assert all(map(harmless_reply, replies))
        accepted += sum(reply == b"OK" for reply in replies[1::11])
    assert 0 < accepted < 300
    before = prepared.contents()
    prepared.run("DEBUG", "RELOAD")
    assert prepared.contents() == before


def varint(n):
    """Zigzag, as dumps have their numbers."""
    n, out = n << 1 if n >= 0 else (-n << 1) - 1, b""
    while n > 127:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])


@pytest.mark.parametrize("seed", range(2))
def test_mutated_policies(prepared, seed):
    random, raw = Random(seed), prepared.connect()
    dump, accepted = raw.execute_command("RL.POLICY", "DUMP"), 0
    numbers = [varint(n) for n in (0, 1, -1, 100, 1000, 4096, 2**31, 2**53, 2**63 - 1, -(2**63))]
    for _ in range(12):
        pipeline = raw.pipeline(transaction=False)
        for _ in range(25):
            body = bytearray(dump[:-8])
            for _ in range(random.choice([1, 1, 2, 4])):
                at = random.randrange(4, len(body))
                if random.random() < 0.3:
                    body[at : at + random.choice([0, 1, 1, 6])] = random.choice(numbers)
                else:
                    body[at] = random.choice([*b"0199/,:sdm", 0, 255, body[at] ^ 1 << random.randrange(8)])
            pipeline.execute_command("RL.POLICY", "RESTORE", with_checksum(bytes(body)), "REPLACE")
            pipeline.execute_command("RL.POLICY", "GET", "p")
            use(pipeline)
        replies = pipeline.execute(raise_on_error=False)
        assert all(map(harmless_reply, replies))
        accepted += sum(reply == b"OK" for reply in replies[::12])
        known = raw.execute_command("RL.POLICY", "DUMP")
        prepared.run("DEBUG", "RELOAD")
        assert raw.execute_command("RL.POLICY", "DUMP") == known
    assert 0 < accepted < 300


# ---- the clock is stepped back


@pytest.fixture
def stepped(server):
    """Two keys, of which one is full; then the clock goes back by a day."""
    clear(server.client)
    server.run("RL.POLICY", "SET", "p", "TOKENBUCKET", "10/m")
    server.run("RL.TAKE", "{k}1", "p", "COST", 9)
    server.run("RL.TAKE", "{k}2", "p", "COST", 10)
    server.clock.back(ms=86_400_000)
    yield server
    clear(server.client)


def test_takeall_repairs_each_key_even_if_it_is_refused(stepped):
    both = ["RL.TAKEALL", 2, "{k}1", "p", "{k}2", "p"]
    before = stepped.contents()
    assert stepped.run(*both, "PEEK")[1][3] == 6000
    assert stepped.contents() == before
    assert [reply[:4] for reply in stepped.run(*both)] == [[0, 10, 1, 0], [0, 10, 0, 6000]]
    stepped.clock.advance(ms=60_000)
    assert [stepped.run("RL.TAKE", f"{{k}}{n}", "p", "PEEK")[2] for n in (1, 2)] == [10, 10]


def test_the_wait_through_the_end_of_a_scale_counts_on_the_repair(stepped):
    stepped.run("RL.POLICY", "SCALE", "p", 0, "FOR", "3s")
    reply = stepped.run("RL.TAKE", "{k}2", "p")
    assert (reply[0], reply[3]) == (0, 6000)
    stepped.clock.advance(ms=5999)
    assert stepped.run("RL.TAKE", "{k}2", "p")[0] == 0
    stepped.clock.advance(ms=1)
    assert stepped.run("RL.TAKE", "{k}2", "p")[0] == 1


def test_what_outlives_itself_before_the_end_of_a_scale_is_not_waited_for(server):
    clear(server.client)
    server.run("RL.POLICY", "SET", "p", "FIXED", "5/s")
    server.run("RL.TAKE", "k", "p", "COST", 5)
    server.run("RL.POLICY", "SET", "p", "FIXED", "5/h")
    server.clock.back(ms=86_400_000)
    server.run("RL.POLICY", "SCALE", "p", 0, "FOR", "3s")
    assert server.run("RL.TAKE", "k", "p")[3] == 3000
    server.clock.advance(ms=2999)
    assert server.run("RL.TAKE", "k", "p")[0] == 0
    server.clock.advance(ms=1)
    assert server.run("RL.TAKE", "k", "p")[0] == 1
    clear(server.client)
