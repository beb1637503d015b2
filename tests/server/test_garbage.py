"""Whatever words a client sends to whatever command of the module: an answer or an error, and the server lives."""

import time
from random import Random

import pytest
import redis

SECONDS = 8
KEYS = [b"k", b"k2", b"text", b"list", b"{k}1", b"{k}2", b"", b"\xff\x00\r\n", b"x" * 300]
NUMBERS = [
    b"0", b"1", b"2", b"3", b"7", b"100", b"1000", b"65536", b"1000000000000", b"1000000000001", b"-1", b"-0", b"1.5",
    b"9223372036854775807", b"9223372036854775808", b"-9223372036854775808", b"18446744073709551616", b"9" * 400,
]  # fmt: skip
RATES = b"10/s 1/366d 1000000000000/ms 5/250ms 3/day 7/month 0/year 9/hour 10/ / 5/0s".split()
WORDS = (
    "COST REFUND FORCE PEEK UPTO KEEP BURST EXACT SLOTS ALIGN TZ ANCHOR HISTORY ALERT ID IDS POLICY RULE COUNT OUTCOME "
    "ADAPT SHADOW AS FOR REPLACE RESET REAL TOKENBUCKET LEAKY FIXED SLIDING QUOTA p q nobody cpu tokenbucket fixed a "
    "1s 90s 30d 366d 367d 1ms UTC -03:00 America/Sao_Paulo Nowhere/Land +99:99 80,95 200:1,404:20,*:-1 70:75,90:50 "
    "tokenbucket=1 fixed=2,a=3 a=1000000000000 =, ,,, : :1 1: a:b * [a-z [^ [ \\ ? p* %s%n"
).encode().split()  # fmt: skip
NEVER = [b"rl.debug"]  # it is not for clients; the clock is set below


def commands(client):
    """All names, those of subcommands as two words."""
    client.response_callbacks = {}
    found = set()
    for name in client.execute_command("COMMAND", "LIST", "FILTERBY", "MODULE", "ratelimit"):
        (info,) = client.execute_command("COMMAND", "INFO", name)
        found |= {sub[0].lower() for sub in info[9]} or {name.lower()}
    return [name.split(b"|") for name in sorted(found)]


def word(random, taken):
    roll = random.randrange(20)
    if roll == 0:
        return random.randbytes(random.choice([0, 1, 3, 17, 129, 5000]))
    if roll == 1:
        made = bytearray(random.choice(RATES + WORDS + NUMBERS))
        for _ in range(random.randrange(1, 3)):
            made.insert(random.randrange(len(made) + 1), random.randrange(256))
        return bytes(made)
    if roll == 2 and taken:
        return random.choice(taken)
    return random.choice(random.choice([KEYS, NUMBERS, RATES, RATES, WORDS, WORDS, WORDS]))


SHAPES = {  # what mostly comes first, so that garbage gets further than to the first argument
    b"rl.take": [KEYS, [b"p", b"q"]],
    b"rl.takeall": [[b"1", b"2"], KEYS, [b"p", b"q"], KEYS, [b"p", b"q"]],
    b"rl.acquire": [KEYS, NUMBERS, [b"1s", b"30d"]],
    b"rl.renew": [KEYS, [b"1s", b"30d"]],
    b"rl.policy|set": [[b"p", b"q", b"r"], [b"TOKENBUCKET", b"LEAKY", b"FIXED", b"SLIDING", b"QUOTA"], RATES],
    b"rl.policy|scale": [[b"p", b"q"], NUMBERS],
    b"rl.policy|get": [[b"p", b"q"]],
    b"rl.policy|del": [[b"p", b"r"]],
    b"rl.policy|dump": [],
    b"rl.policy|list": [],
    b"rl.load": [[b"cpu", b"x"], NUMBERS],
    b"rl.state": [KEYS],
    b"rl.history": [KEYS],
    b"rl.release": [KEYS],
    b"rl.stats": [],
    b"rl.top": [[b"p", b"q"]],
    b"cl.throttle": [KEYS, NUMBERS, NUMBERS, NUMBERS],
}
LIMITERS = [KEYS, RATES]


def call(random, name, dumps):
    shape = SHAPES.get(b"|".join(name), LIMITERS if len(name) == 1 else [])
    words = [random.choice(choices) for choices in shape] if random.random() < 0.8 else []
    if name[-1] == b"restore" and random.random() < 0.5:
        words = [random.choice(dumps)]
    for _ in range(random.choice([0, 0, 1, 1, 2, 2, 3, 4, 6, 12, 60])):
        words.append(word(random, words))
    return [*name, *words]


def prepare(client):
    client.execute_command("FLUSHALL")
    client.execute_command("SET", "text", "x")
    client.execute_command("RPUSH", "list", "x")
    policy = (
        "TOKENBUCKET 10/s FIXED 9/m SLIDING 9/m AS a QUOTA 9/day HISTORY 3 OUTCOME 200:1,404:20,*:-1 ADAPT cpu 70:75"
    )
    client.execute_command("RL.POLICY", "SET", "p", *policy.split())
    client.execute_command("RL.POLICY", "SET", "q", "SLIDING", "5/m", "SLOTS", "7", "LEAKY", "5/m", "SHADOW")


@pytest.mark.parametrize("protocol", [2, 3])
def test_garbage_is_answered(servers, protocol):
    server = servers()
    client = server.connect(protocol=protocol)
    names = [name for name in commands(client) if name[0] not in NEVER]
    assert len(names) >= 20 and [b"rl.takeall"] in names and [b"rl.policy", b"restore"] in names
    random, answered, rounds, end = Random(protocol), {}, 0, time.monotonic() + SECONDS / 2
    while rounds < 40 or time.monotonic() < end:
        rounds += 1
        prepare(client)
        dumps = [client.execute_command("RL.POLICY", "DUMP"), b"RLP\x01", b""]
        pipeline = client.pipeline(transaction=False)
        calls = [call(random, random.choice(names), dumps) for _ in range(300)]
        for n, words in enumerate(calls):
            if n % 60 == 0:
                instant = random.choice([0, 1_700_000_000_000_000, 2**53 - 1, random.randrange(2**53)])
                pipeline.execute_command("RL.DEBUG", "CLOCK", instant)
            pipeline.execute_command(*words)
        replies = pipeline.execute(raise_on_error=False)
        assert not any(isinstance(reply, redis.ConnectionError) for reply in replies), server.log()[-3000:]
        replies = [reply for n, reply in enumerate(replies) if n % 61]
        for words, reply in zip(calls, replies):
            name = b" ".join(words[:2] if words[0] == b"rl.policy" else words[:1])
            answered.setdefault(name, set()).add(isinstance(reply, redis.ResponseError))
    assert client.execute_command("PING") in (b"PONG", True)
    assert {name for name, seen in answered.items() if seen != {True, False}} == {b"rl.apply"}, "closed to clients"
    client.execute_command("RL.DEBUG", "CLOCK", 1_700_000_000_000_000)
    before = server.contents(), client.execute_command("RL.POLICY", "DUMP")
    client.execute_command("DEBUG", "RELOAD")
    assert (server.contents(), client.execute_command("RL.POLICY", "DUMP")) == before


def test_the_empty_key_is_one_that_is_refused(server):
    server.run("RL.POLICY", "SET", "p", "FIXED", "1/h")
    server.run("RL.STATS", "RESET")
    for _ in range(3):
        server.run("RL.TAKE", "", "p")
    assert server.run("RL.TOP", "p") == [["", 2, 0]]
    server.run("RL.POLICY", "DEL", "p")
