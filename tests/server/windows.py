"""What the tests of windows and budgets share: random traffic compared with a model, copies compared with what was
copied, forged payloads, and calls that must be refused."""

from random import Random

import redis
from harness import START_US, contents, pairs, until
from hypothesis import strategies as st
from model import Ask, Beyond
from test_persistence import mutated, sealed

DAY_US = 86_400_000_000
TOO_MUCH = "would go above 1000000000000000 units"

# ---- traffic, and what the model says to it

MODES = st.sampled_from(["TAKE", "TAKE", "TAKE", "FORCE", "UPTO", "REFUND"])
KEEPS = st.sampled_from([0, 0, 0, 1, 60_000, 366 * 86_400_000])
COSTS = st.one_of(
    st.just(("units", 1)),
    st.tuples(st.just("units"), st.integers(1, 30)),
    st.tuples(st.sampled_from(["limit", "remaining"]), st.integers(-2, 2)),
    st.tuples(st.just("units"), st.integers(1, 10**12)),
)


def calls(steps_us, most=30):
    """Steps of time in both directions, some of them relative to what was answered last."""
    near = [-1_000_000, -1000, -1, 0, 1, 1000, 1_000_000]
    steps = st.one_of(
        st.just(("us", 0)),
        st.tuples(st.sampled_from(["wait_ms", "reset_ms"]), st.sampled_from(near)),
        st.tuples(st.just("us"), st.one_of(st.integers(-5000, 5000), steps_us)),
    )
    call = st.tuples(steps, st.integers(0, 3), MODES, COSTS, st.booleans(), KEEPS)
    return st.lists(call, min_size=1, max_size=most)


def options(ask):
    words = ["REFUND" if ask.mode == "REFUND" else "COST", ask.cost]
    words += [ask.mode] if ask.mode in ("FORCE", "UPTO") else []
    return words + ["PEEK"] * ask.peek + (["KEEP", f"{ask.keep_ms}ms"] if ask.keep_ms else [])


def concrete(model, traffic, rules, start_us=START_US):
    """The calls in numbers, each with what the model says to it: instant, arguments, reply, cost, state."""
    now_us, reply = start_us, [0] * 5
    for (since, step_us), rule, mode, (base, cost), peek, keep_ms in traffic:
        limit, words = rules[rule % len(rules)]
        now_us += step_us + {"us": 0, "wait_ms": max(reply[3], 0), "reset_ms": reply[4]}[since] * 1000
        now_us = min(max(now_us, 0), 2**53 - 1)
        cost += {"units": 0, "limit": reply[1], "remaining": reply[2]}[base]
        peek = peek and mode in ("TAKE", "UPTO")
        ask = Ask(min(max(cost, 1), 10**12), mode, peek, 0 if peek else keep_ms)
        try:
            answer = reply = model.call(limit, ask, now_us)
        except Beyond:
            answer = Beyond
        yield now_us, [*words, *options(ask)], answer, ask.cost, model.describe(now_us, ask.cost)


def check_traffic(client, command, model, traffic, rules, too_much=TOO_MUCH, start_us=START_US):
    """Every field of every reply, and of what the state says after it. Rules are pairs: a limit, and its words."""
    expected = list(concrete(model, traffic, rules, start_us))
    pipeline = client.pipeline(transaction=False)
    pipeline.execute_command("DEL", "k")
    for now_us, words, _, cost, _ in expected:
        pipeline.execute_command("RL.DEBUG", "CLOCK", now_us)
        pipeline.execute_command(command, "k", *words)
        pipeline.execute_command("RL.STATE", "k", "COST", cost)
    replies = pipeline.execute(raise_on_error=False)
    for (now_us, words, answer, _, state), reply, flat in zip(expected, replies[2::3], replies[3::3]):
        call = f"at {now_us}: {command} k {' '.join(map(str, words))}"
        if answer is Beyond:
            assert isinstance(reply, redis.ResponseError) and too_much in str(reply), call
        else:
            assert reply == answer, call
        assert pairs(flat) == state, call


# ---- copies


def mix(db, command, rules, seed, step_us, calls=120):
    """Grants, refusals, debts, refunds and changed parameters on some keys; a frozen clock moves both ways."""
    random, now_us = Random(seed), START_US
    extras = [[], [], ["COST", 2], ["COST", 3, "FORCE"], ["COST", 9, "UPTO"], ["REFUND", 2], ["KEEP", "2d"], ["PEEK"]]
    for _ in range(calls):
        if db.clock.now_us is not None:
            now_us += random.randrange(-step_us, 2 * step_us)
            db.clock.freeze(now_us)
        db.run(command, f"key:{random.randrange(8)}", *random.choice(rules), *random.choice(extras))


def check_rewritten_log(db, preamble):
    node = db.nodes[0]
    before = contents(node)
    assert before[1]
    node.config_set("aof-use-rdb-preamble", preamble)
    node.bgrewriteaof()

    def done():
        info = node.info("persistence")
        return not info["aof_rewrite_in_progress"] and not info["aof_rewrite_scheduled"]

    until(done, "the rewrite")
    node.execute_command("DEBUG", "LOADAOF")
    assert contents(node) == before


def check_dumps_and_copies(server):
    raw, before = server.connect(), server.contents()
    assert before[1]
    dumps = [(key, expiry, raw.dump(key)) for key, expiry in before[1].items()]
    for key, _, _ in dumps:
        server.run("COPY", key, b"copy of " + key)
        for question in (["DEBUG", "DIGEST-VALUE"], ["PEXPIRETIME"]):
            assert server.run(*question, key) == server.run(*question, b"copy of " + key)
    server.run("FLUSHALL")
    for key, expiry, dump in dumps:
        raw.restore(key, max(expiry, 0), dump, absttl=True)
    assert server.contents() == before


# ---- payloads that nobody wrote


def check_forged(server, made, used, seed, times=600):
    """Whatever a payload says, it is refused or is a value that works. made: calls that fill keys; used: calls on k."""
    random, raw = Random(seed), server.connect()
    bodies = []
    for call in made:
        raw.execute_command(*call)
    for key in raw.keys():
        bodies.append(raw.dump(key)[:-8])
    accepted, each = 0, len(used) + 3
    for _ in range(times // 50):
        pipeline = raw.pipeline(transaction=False)
        for _ in range(50):
            pipeline.restore("k", 0, sealed(mutated(random.choice(bodies), random)), replace=True)
            pipeline.execute_command("RL.STATE", "k")
            for call in used:
                pipeline.execute_command(*call)
            pipeline.execute_command("DUMP", "k")
        replies = pipeline.execute(raise_on_error=False)[::each]
        accepted += sum(reply == b"OK" for reply in replies)
        assert all(reply == b"OK" or "Bad data format" in str(reply) for reply in replies)
    assert 0 < accepted < times
    before = server.contents()
    server.run("DEBUG", "RELOAD")
    assert server.contents() == before


# ---- calls that are wrong


def label(row):
    words = (word[:24].decode("latin1") if isinstance(word, bytes) else str(word)[:24] for word in row[0])
    return " ".join(words)[:70]


def check_refused(server, call, prefix, needles):
    """An error that names what is wrong, and nothing changed."""
    before = server.contents(), server.info("rdb_changes_since_last_save", "persistence")
    reply = server.first_line(*call)
    assert reply.startswith(f"-{prefix} "), reply
    for needle in [needles] if isinstance(needles, str) else needles:
        assert needle in reply
    assert (server.contents(), server.info("rdb_changes_since_last_save", "persistence")) == before


def wrong_everywhere(command, rate):
    """Rows that are wrong for every limiter: the call, the error's prefix, what its message must contain."""
    for option in ("COST", "REFUND"):
        for n in ("0", "-1", "1.5", "", "1000000000001", "9223372036854775808", "x"):
            yield [command, "k", rate, option, n], "ERR", option
        yield [command, "k", rate, option], "ERR", option
    yield [command, "k", rate, "KEEP", "5"], "ERR", ("KEEP", "unit")
    yield [command, "k", rate, "KEEP", "367d"], "ERR", ("KEEP", "366d")
    yield [command, "k", rate, "COST", "1", "COST", "1"], "ERR", ("COST", "twice")
    for one, other in [("PEEK", "FORCE"), ("FORCE", "UPTO")]:
        yield [command, "k", rate, one, other], "ERR", (one, other)
    yield [command, "k", rate, "REFUND", "1", "COST", "1"], "ERR", ("REFUND", "COST")
    yield [command, "k", rate, "PEEK", "REFUND", "1"], "ERR", ("PEEK", "REFUND")
    yield [command, "k", rate, "BOGUS"], "ERR", ("option", "COST", "KEEP")
    yield [command], "ERR", "wrong number of arguments"
    yield [command, "k"], "ERR", "wrong number of arguments"
    yield [command, "string", rate], "WRONGTYPE", "wrong kind of value"
    yield [command, "other", rate], "WRONGTYPE", "wrong kind of value"
    yield [command, "string", "10/x"], "ERR", "period"  # arguments come before keys


WRONG_RATES = [
    ("", "rate"), ("10", "rate"), ("10/", "rate"), ("/s", "rate"), ("10/month", "rate"), ("-1/s", "rate"),
    ("0/s", "count"), ("1000000000001/s", "count"), ("10/0s", "period"), ("10/367d", "period"), (b"\xff/s", "rate"),
]  # fmt: skip
