"""Whatever is wrong with a call: an error that names the argument, nothing changed, the server alive."""

import pytest
import redis

BUCKET = "RL.TOKENBUCKET"

BAD_NUMBERS = [
    "", " ", "0", "00", "-1", "+1", "1.5", "1.", "1e3", "0x10", "abc", "one", "1 ", " 1", "1\x00", "\x001", "1\n",
    b"\xff\xfe", "1000000000001", "9223372036854775807", "9223372036854775808", "18446744073709551617", "9" * 1000,
    "1_000", "1,000", "NaN", "inf", "-0", "٣", "%s%n", "1/s",
]  # fmt: skip

MALFORMED_RATES = [
    "", "/", "10", "10/", "/s", "s", "10s", "10 /s", "10/ s", " 10/s", "10/s ", "10//s", "10/s/s", "-10/s", "+10/s",
    "1.5/s", "10/1.5s", "1e3/s", "0x10/s", "10/x", "10/sec", "10/seconds", "10/month", "10/year", "10/5", "10/-5s",
    "10/+5s", "10/us", "10/ns", "10\\s", "ten/s", "10/s\x00", "\x0010/s", "10/ms\n", b"\xff/\xff", b"10/\xf3", "10/٣s",
    "x" * 1000, "/" * 1000, "%s/%n", "COST", "10/m s", "10/sm",
]  # fmt: skip

OUT_OF_BOUNDS_RATES = [
    ("0/s", "count"), ("000/s", "count"), ("1000000000001/s", "count"), ("9223372036854775808/s", "count"),
    ("18446744073709551617/s", "count"), ("9" * 500 + "/s", "count"), ("10/0s", "period"), ("10/0ms", "period"),
    ("10/367d", "period"), ("10/53w", "period"), ("10/31622400001ms", "period"), ("10/8785h", "period"),
    ("10/9223372036854775808ms", "period"), ("10/18446744073709551617s", "period"), ("10/" + "9" * 500 + "w", "period"),
    ("10/153722867280913m", "period"),
]  # fmt: skip

BAD_DURATIONS = [
    ("", "unit"), ("5", "unit"), ("500", "unit"), ("9" * 100, "unit"), ("s", "number"), ("-5s", "number"),
    ("+5s", "number"), ("1.5s", "number"), (" 5s", "number"), ("5 s", "unit"), ("5s ", "unit"), ("5x", "unit"),
    ("5seconds", "unit"), ("5month", "unit"), ("5us", "unit"), ("1e3ms", "unit"), ("5s\x00", "unit"),
    (b"\xffs", "unit"), ("5/s", "unit"), ("0s", "1ms"), ("0ms", "1ms"), ("367d", "366d"), ("53w", "366d"),
    ("31622400001ms", "366d"), ("9223372036854775808ms", "366d"), ("18446744073709551617s", "366d"),
    ("9" * 500 + "d", "366d"),
]  # fmt: skip

OPTIONS = [("BURST", 9), ("COST", 1), ("PEEK",), ("FORCE",), ("UPTO",), ("REFUND", 1), ("KEEP", "1s")]
EXCLUSIVE = [
    (("PEEK",), ("FORCE",)), (("PEEK",), ("REFUND", 1)), (("PEEK",), ("KEEP", "1s")), (("FORCE",), ("UPTO",)),
    (("REFUND", 1), ("COST", 1)), (("REFUND", 1), ("FORCE",)), (("REFUND", 1), ("UPTO",)),
]  # fmt: skip
UNKNOWN = [
    "",
    " ",
    "COSTS",
    "COS",
    "CO",
    "RATE",
    "10",
    "-1",
    "EXACT",
    "TZ",
    "COST\x00",
    b"\xff\x00\r\n",
    "x" * 1000,
    "%s%n",
]
WRONG_ARITY = [
    [BUCKET], [BUCKET, "k"], ["RL.STATE"], ["RL.DEBUG"], ["RL.DEBUG", "CLOCK"], ["RL.DEBUG", "CLOCK", "1", "2"],
    ["RL.APPLY"], ["RL.APPLY", "k"], ["RL.APPLY", "k", "x", "y"],
]  # fmt: skip
BAD_DEBUG = [
    (["NOPE", "1"], "CLOCK"), (["", "1"], "CLOCK"), (["CLOCK", ""], "CLOCK"), (["CLOCK", "-1"], "CLOCK"),
    (["CLOCK", "now"], "CLOCK"), (["CLOCK", "1.5"], "CLOCK"), (["CLOCK", "REAL "], "CLOCK"),
    (["CLOCK", "9007199254740992"], "CLOCK"), (["CLOCK", "9223372036854775808"], "CLOCK"),
    (["CLOCK", b"\xff"], "CLOCK"),
]  # fmt: skip
TEN_YEARS = "ten years"
TOO_SLOW = [  # the burst could not refill within ten years
    ["1/366d", "BURST", "10"], ["1/d", "BURST", "3654"], ["1/ms", "BURST", "1000000000000"],
    ["1000/366d", "BURST", "1000000000000"], ["2/7d", "BURST", "1044"],
]  # fmt: skip
TOO_MUCH_DEBT = [
    ["1/366d", "COST", "10", "FORCE"], ["1/d", "COST", "3654", "FORCE"], ["1/d", "COST", "1000000000000", "FORCE"],
    ["1/ms", "COST", "1000000000000", "FORCE"], ["1000/d", "BURST", "1", "COST", "3653001", "FORCE"],
]  # fmt: skip
EFFECTS = ["", "x", b"\x01b", b"\x02b", b"\x01b" + b"\x00" * 30, b"\xff" * 300]


def table():
    """Rows of: the call, the error's prefix, what its message must contain."""
    for option in ("COST", "BURST", "REFUND"):
        yield from (([BUCKET, "k", "10/s", option, n], "ERR", option) for n in BAD_NUMBERS)
    yield from ((["RL.STATE", "bucket", "COST", n], "ERR", "COST") for n in BAD_NUMBERS)
    yield from (([BUCKET, "k", rate], "ERR", "rate must be count/period, such as 10/s") for rate in MALFORMED_RATES)
    yield from (([BUCKET, "k", rate], "ERR", f"rate must have a {what} from") for rate, what in OUT_OF_BOUNDS_RATES)
    yield from (([BUCKET, "k", "10/s", "KEEP", value], "ERR", ("KEEP", what)) for value, what in BAD_DURATIONS)
    for option in OPTIONS:
        yield [BUCKET, "k", "10/s", *option, *option], "ERR", (option[0], "twice")
        if len(option) == 2:
            yield [BUCKET, "k", "10/s", option[0]], "ERR", option[0]
    for one, other in EXCLUSIVE:
        yield [BUCKET, "k", "10/s", *one, *other], "ERR", (one[0], other[0])
        yield [BUCKET, "k", "10/s", *other, *one], "ERR", (one[0], other[0])
    for word in UNKNOWN:
        yield [BUCKET, "k", "10/s", word], "ERR", ("option", "BURST", "KEEP")
        yield ["RL.STATE", "bucket", word], "ERR", ("option", "COST")
    yield ["RL.STATE", "bucket", "COST"], "ERR", "COST"
    yield ["RL.STATE", "bucket", "COST", "1", "COST", "1"], "ERR", ("COST", "twice")
    yield from ((call, "ERR", "wrong number of arguments") for call in WRONG_ARITY)
    yield from ((["RL.DEBUG", *words], "ERR", what) for words, what in BAD_DEBUG)
    for key in ("string", "list", "hash"):
        yield [BUCKET, key, "10/s"], "WRONGTYPE", "wrong kind of value"
        yield [BUCKET, key, "10/s", "PEEK"], "WRONGTYPE", "wrong kind of value"
        yield [BUCKET, key, "10/s", "REFUND", "1"], "WRONGTYPE", "wrong kind of value"
        yield ["RL.STATE", key], "WRONGTYPE", "wrong kind of value"
    yield [BUCKET, "string", "10/x"], "ERR", "rate"  # arguments come before keys
    yield from (([BUCKET, "k", *words], "ERR", ("BURST", TEN_YEARS)) for words in TOO_SLOW)
    yield from (([BUCKET, "k", *words], "ERR", TEN_YEARS) for words in TOO_MUCH_DEBT)
    yield [BUCKET, "bucket", "1/366d"], "ERR", TEN_YEARS  # what is used there can't be paid back at this rate
    yield [BUCKET, "bucket", "1/366d", "PEEK"], "ERR", TEN_YEARS
    yield [BUCKET, "bucket", "1/366d", "REFUND", "1"], "ERR", TEN_YEARS
    yield from ((["RL.APPLY", "bucket", effect], "ERR", "internal") for effect in EFFECTS)
    for word in ("STATE", "TOKENBUCKET"):  # strings in other encodings
        yield [f"RL.{word}", b"\xff\x00", *(["10/s"] if word == "TOKENBUCKET" else []), "\U0001f4a5"], "ERR", "option"


def label(value):
    return value[:24].decode("latin1") if isinstance(value, bytes) else str(value)[:24]


TABLE = list(table())


@pytest.fixture
def prepared(server):
    server.run(BUCKET, "bucket", "10/s", "BURST", "100", "COST", "15")
    server.run("SET", "string", "x")
    server.run("RPUSH", "list", "x")
    server.run("HSET", "hash", "x", "x")
    return server


def test_the_table_is_long_enough():
    assert len({tuple(call) for call, _, _ in TABLE}) >= 150


@pytest.mark.parametrize("call, prefix, needles", TABLE, ids=[" ".join(map(label, row[0]))[:70] for row in TABLE])
def test_an_error_names_the_argument_and_changes_nothing(prepared, call, prefix, needles):
    before = prepared.contents(), prepared.info("rdb_changes_since_last_save", "persistence")
    reply = prepared.first_line(*call)
    assert reply.startswith(f"-{prefix} ")
    for needle in [needles] if isinstance(needles, str) else needles:
        assert needle in reply
    assert (prepared.contents(), prepared.info("rdb_changes_since_last_save", "persistence")) == before


@pytest.mark.parametrize("effect", EFFECTS, ids=repr)
def test_effects_are_closed_to_transactions_and_scripts(prepared, effect):
    before = prepared.contents()
    transaction = prepared.client.pipeline(transaction=True)
    transaction.execute_command("RL.APPLY", "bucket", effect)
    assert "internal" in str(transaction.execute(raise_on_error=False)[0])
    with pytest.raises(redis.ResponseError, match="internal"):
        prepared.client.eval("return redis.call('RL.APPLY', KEYS[1], ARGV[1])", 1, "bucket", effect)
    assert prepared.contents() == before


def test_a_real_effect_sent_by_a_client_is_refused_too(prepared, servers):
    """Taken from an AOF, where it stands in place of the call."""
    logged = servers("--appendonly", "yes")
    logged.run(BUCKET, "bucket", "10/s", "COST", "5")
    effect = next(words[2] for words in logged.logged() if words[0] == b"RL.APPLY")
    before = prepared.contents()
    assert "internal" in prepared.first_line("RL.APPLY", "bucket", effect)
    assert prepared.contents() == before


def test_debug_is_not_for_scripts(prepared):
    with pytest.raises(redis.ResponseError, match="script"):
        prepared.client.eval("return redis.call('RL.DEBUG', 'CLOCK', 'REAL')", 0)
