"""A well-behaved guest: what the server and its tools see of the module."""

import pytest
import redis
from harness import MODULE, PRELOAD, until

BUCKET = "RL.TOKENBUCKET"


def version(server):
    """As Redis counts; Valkey 8 is as far as Redis 7.4 there."""
    info = server.client.info("server")
    return (8, 0) if "valkey_version" in info else tuple(map(int, info["redis_version"].split(".")[:2]))


def words(reply):
    """A list of flags, as a set."""
    return {str(word).lower() for word in reply}


# ---- commands


@pytest.fixture
def plain(server):
    """A client of RESP3 that changes nothing in the replies."""
    client = server.connect(protocol=3, decode_responses=True)
    client.response_callbacks.clear()
    return client


@pytest.mark.parametrize(
    "name, arity, flags, key",
    [
        ("rl.tokenbucket", -3, {"write", "denyoom", "fast"}, 1),
        ("rl.state", -2, {"readonly", "fast"}, 1),
        ("rl.apply", 3, {"write", "fast"}, 1),
        ("rl.debug", 3, {"admin", "noscript"}, 0),
    ],
)
def test_commands_tell_their_flags(plain, name, arity, flags, key):
    [[_, told_arity, told_flags, *positions, _, _, specs, _]] = plain.execute_command("COMMAND", "INFO", name)
    assert (told_arity, positions, len(specs)) == (arity, [key, key, key], key)
    assert flags <= words(told_flags)


@pytest.mark.parametrize(
    "call", [[BUCKET, "k", "10/s", "COST", "2"], ["RL.STATE", "k", "COST", "2"], ["RL.APPLY", "k", "x"]]
)
def test_commands_tell_their_keys(plain, call):
    assert plain.execute_command("COMMAND", "GETKEYS", *call) == ["k"]


def test_commands_tell_what_they_do_with_their_keys(plain):
    def flags(*call):
        return words(plain.execute_command("COMMAND", "GETKEYSANDFLAGS", *call)[0][1])

    assert flags(BUCKET, "k", "10/s") == {"rw", "access", "update"}
    assert flags("RL.STATE", "k") == {"ro", "access"}


@pytest.mark.parametrize(
    "name, arguments",
    [
        ("rl.tokenbucket", ["key", "rate", "burst", "amount", "mode", "peek", "duration"]),
        ("rl.state", ["key", "policy", "cost"]),
        ("rl.debug", ["clock", "instant"]),
    ],
)
def test_commands_are_documented(plain, name, arguments):
    [docs] = plain.execute_command("COMMAND", "DOCS", name).values()
    assert docs["summary"].endswith(".") and docs["complexity"].startswith("O(") and docs["since"]
    assert [argument["name"] for argument in docs["arguments"]] == arguments
    assert docs["module"] == "ratelimit"


# ---- users


@pytest.fixture
def user(server):
    server.run("ACL", "SETUSER", "app", "reset", "on", "nopass", "~user:*", "+rl.tokenbucket", "+rl.state", "+multi")
    yield server.connect(username="app", password="", decode_responses=True)
    server.run("ACL", "DELUSER", "app")


def test_key_patterns_bind(user):
    assert user.execute_command(BUCKET, "user:1", "5/m")[0] == 1
    for call in ([BUCKET, "other:1", "5/m"], ["RL.STATE", "other:1"], ["RL.DEBUG", "CLOCK", "REAL"]):
        with pytest.raises(redis.exceptions.NoPermissionError):
            user.execute_command(*call)


def test_there_is_a_category(server):
    if version(server) < (7, 4):
        pytest.skip("this server has no categories of modules")
    assert {"rl.tokenbucket", "rl.state"} <= words(server.run("ACL", "CAT", "ratelimit"))
    server.run("ACL", "SETUSER", "app", "reset", "on", "nopass", "~*", "+@ratelimit", "-@dangerous")
    app = server.connect(username="app", password="")
    assert app.execute_command(BUCKET, "k", "5/m")[0] == 1
    with pytest.raises(redis.exceptions.NoPermissionError):
        app.execute_command("RL.DEBUG", "CLOCK", "REAL")
    server.run("ACL", "DELUSER", "app")


# ---- what is told


def test_info_counts_calls_and_units(servers):
    server = servers()
    server.clock.freeze()
    for call in ["COST 4", "COST 4", "COST 9 UPTO", "REFUND 3", "PEEK", "COST 2 FORCE"]:
        server.run(BUCKET, "k", "5/m", *call.split())
    with pytest.raises(redis.ResponseError):
        server.run(BUCKET, "k", "5/x")
    info = server.client.info("ratelimit")
    assert info["ratelimit_clock"] == "frozen"
    assert info["ratelimit_rl.tokenbucket"] == {
        "granted_calls": 3,
        "granted_units": 4 + 1 + 2,
        "refused_calls": 1,
        "refused_units": 4 + 8,
        "refunded_calls": 1,
        "refunded_units": 3,
    }


def test_events_for_those_who_watch_the_keyspace(server):
    server.run("CONFIG", "SET", "notify-keyspace-events", "KEdg")
    listener = server.client.pubsub()
    listener.psubscribe("__keyevent@0__:*")
    listener.get_message(timeout=5)
    for call in ["COST 5", "COST 1", "PEEK", "REFUND 2", "REFUND 3", "REFUND 3"]:
        server.run(BUCKET, "k", "5/m", *call.split())
    server.run("SET", "end", "x")
    server.run("DEL", "end")
    seen = []
    while ("del", "end") not in seen:
        message = listener.get_message(timeout=5)
        seen.append((message["channel"].split(":")[1], message["data"]))
    server.run("CONFIG", "SET", "notify-keyspace-events", "")
    events = ["rl.granted", "rl.refused", "rl.refunded", "rl.refunded", "del"]
    assert seen[:-1] == [(event, "k") for event in events]


def told(server, *call):
    """Whether a client that tracks k is told of the call."""
    listener = server.client.pubsub()
    listener.execute_command("CLIENT", "ID")
    number = listener.parse_response()
    listener.subscribe("__redis__:invalidate")
    listener.get_message(timeout=5)
    reader = server.connect(decode_responses=True, single_connection_client=True)
    reader.execute_command("CLIENT", "TRACKING", "ON", "REDIRECT", number)
    reader.execute_command("RL.STATE", "k")
    reader.get("end")
    server.run(*call)
    server.run("SET", "end", "x")
    keys = []
    while "end" not in keys:
        keys += listener.get_message(timeout=5)["data"]
    return "k" in keys


def test_client_tracking_tells_of_changes_only(server):
    server.run(BUCKET, "k", "5/m", "COST", 4)
    assert not told(server, BUCKET, "k", "5/m", "COST", 2)
    assert not told(server, BUCKET, "k", "5/m", "PEEK")
    assert not told(server, BUCKET, "k", "1/h")
    assert told(server, BUCKET, "k", "5/m")
    assert told(server, BUCKET, "k", "5/m", "REFUND", 1)


@pytest.mark.parametrize(
    "call, aborted",
    [
        ("COST 2", False),
        ("PEEK", False),
        ("COST 9", False),
        ("COST 1", True),
        ("REFUND 1", True),
        ("COST 9 FORCE", True),
    ],
)
def test_a_transaction_is_aborted_by_changes_only(server, call, aborted):
    server.run(BUCKET, "k", "5/m", "COST", 4)
    transaction = server.client.pipeline()
    transaction.watch("k")
    server.run(BUCKET, "k", "5/m", *call.split())
    transaction.multi()
    transaction.set("other", "x")
    if aborted:
        with pytest.raises(redis.WatchError):
            transaction.execute()
    else:
        assert transaction.execute() == [True]


# ---- keys like any other


def test_the_type_has_a_name(server):
    server.run(BUCKET, "k", "5/m")
    server.run("SET", "s", "x")
    assert server.client.type("k") == "rl-bucket"
    assert list(server.client.scan_iter(_type="rl-bucket")) == ["k"]


def test_keys_can_be_looked_at_and_moved(server):
    server.run(BUCKET, "k", "5/m", "COST", 3)
    before = server.state("k")
    assert 0 < server.run("MEMORY", "USAGE", "k") < 200
    assert server.run("OBJECT", "ENCODING", "k")
    assert server.run("OBJECT", "IDLETIME", "k") >= 0
    assert server.run("OBJECT", "REFCOUNT", "k") == 1
    assert "encoding" in str(server.run("DEBUG", "OBJECT", "k"))
    server.run("CONFIG", "SET", "maxmemory-policy", "allkeys-lfu")
    assert server.run("OBJECT", "FREQ", "k") >= 0
    server.run("CONFIG", "SET", "maxmemory-policy", "noeviction")
    server.run("RENAME", "k", "renamed")
    server.run("MOVE", "renamed", 1)
    server.run("SWAPDB", 0, 1)
    assert server.state("renamed") == before
    server.run("SWAPDB", 0, 1)
    server.run("FLUSHALL")


def test_active_defragmentation_does_no_harm(server):
    try:
        server.run("CONFIG", "SET", "activedefrag", "yes")
    except redis.ResponseError:
        pytest.skip("this server cannot defragment")
    for n in range(200):
        server.run(BUCKET, f"k{n}", "5/m")
    server.run("CONFIG", "SET", "activedefrag", "no")
    assert server.state("k7")["remaining"] == 4


@pytest.mark.parametrize(
    "call", ["10/s COST 10", "10/s COST 1", "5/m COST 3", "1/366d", "100/h COST 900 FORCE", "7/250ms COST 7"]
)
def test_expiry_is_when_nothing_is_left_to_remember_or_little_later(server, call):
    server.clock.release()
    transaction = server.client.pipeline(transaction=True)
    transaction.execute_command(BUCKET, "k", *call.split())
    transaction.pttl("k")
    (*_, reset_ms), ttl_ms = transaction.execute()
    assert reset_ms - 5 <= ttl_ms <= reset_ms + reset_ms // 16 + 5


def test_expiry_is_not_touched_when_it_need_not_be(server):
    server.clock.release()
    server.run(BUCKET, "k", "10/d", "COST", 5)
    before = server.run("PEXPIRETIME", "k")
    for call in ["COST 6", "PEEK", "REFUND 1"]:
        server.run(BUCKET, "k", "10/d", *call.split())
    assert server.run("PEXPIRETIME", "k") == before


def test_keep_is_part_of_the_expiry(server):
    server.clock.release()
    server.run(BUCKET, "k", "10/s", "KEEP", "1h")
    assert 3_590_000 < server.run("PTTL", "k") <= 3_600_000 * 17 // 16
    server.run(BUCKET, "k", "10/s")
    assert 3_590_000 < server.run("PTTL", "k") <= 3_600_000 * 17 // 16


def test_a_key_really_expires(server):
    server.clock.release()
    server.run(BUCKET, "k", "1/20ms")
    until(lambda: server.run("EXISTS", "k") == 0, "the key to expire", seconds=5)
    assert server.run(BUCKET, "k", "1/20ms")[0] == 1


def test_no_expiry_while_the_clock_is_frozen(server):
    server.run(BUCKET, "k", "10/s")
    assert server.run("PTTL", "k") == -1


def test_a_full_memory_grants_nothing_and_still_answers(server):
    server.run(BUCKET, "k", "5/m")
    server.run("CONFIG", "SET", "maxmemory", "1")
    try:
        with pytest.raises(redis.exceptions.OutOfMemoryError):
            server.run(BUCKET, "k", "5/m")
        assert server.state("k")["remaining"] == 4
    finally:
        server.run("CONFIG", "SET", "maxmemory", "0")


# ---- loading


def test_without_the_argument_there_is_no_debugging(servers):
    server = servers(load=(MODULE,))
    with pytest.raises(redis.ResponseError, match="unknown command"):
        server.run("RL.DEBUG", "CLOCK", "REAL")
    assert server.run(BUCKET, "k", "5/m")[0] == 1
    assert server.client.info("ratelimit")["ratelimit_clock"] == "real"


def test_loading_with_an_unknown_argument_fails_and_says_why(servers):
    server = servers(load=())
    with pytest.raises(redis.ResponseError):
        server.run("MODULE", "LOAD", MODULE, "nonsense")
    assert "unknown load argument 'nonsense'" in server.log()
    server.run("MODULE", "LOAD", MODULE)
    assert server.run(BUCKET, "k", "5/m")[0] == 1
    with pytest.raises(redis.ResponseError):
        server.run("MODULE", "LOAD", MODULE)
    assert server.run(BUCKET, "k", "5/m")[0] == 1


def test_unloading_is_refused(server):
    server.run(BUCKET, "k", "5/m")
    with pytest.raises(redis.ResponseError, match="data types"):
        server.run("MODULE", "UNLOAD", "ratelimit")
    assert server.run(BUCKET, "k", "5/m") == [1, 5, 3, 0, 24000]


# ---- many keys

MANY_LIMITS = """
for i = 1, 3000 do redis.call('RL.TOKENBUCKET', 'k' .. i, (i + ARGV[1]) .. '/366d') end
"""


@pytest.mark.parametrize("empty", [["FLUSHALL", "ASYNC"], ["FLUSHALL", "SYNC"], ["UNLINK"], ["DEL"]], ids=" ".join)
def test_shared_limits_survive_the_end_of_their_keys(servers, empty):
    """Keys are made while another thread still frees those of the round before."""
    server, all_keys = servers(), [f"k{n}" for n in range(1, 3001)]
    for round_ in range(12):
        server.client.eval(MANY_LIMITS, 0, round_ * 3000)
        for n in (1, 1500, 3000):
            assert server.state(f"k{n}")["rule"] == f"{n + round_ * 3000}/366d"
        server.run(*empty, *([] if empty[0] == "FLUSHALL" else all_keys))
        if round_ % 2:
            until(lambda: server.info("lazyfree_pending_objects", "memory") == 0, "the other thread")
    assert server.run("DBSIZE") == 0
    assert server.client.info("ratelimit")["ratelimit_distinct_limits"] < 20_000, "what nobody holds is swept"


FILL = {
    "integer": "redis.call('SET', KEYS[1] .. i, 100000 + i, 'PX', 3600000)",
    "lua bucket": "redis.call('HSET', KEYS[1] .. i, 'tokens', '9', 'ts', '1700000000.123456');"
    "redis.call('PEXPIRE', KEYS[1] .. i, 3600000)",
    "bucket": "redis.call('RL.TOKENBUCKET', KEYS[1] .. i, '10/h')",
}


@pytest.mark.skipif(bool(PRELOAD), reason="a sanitizer's allocator takes more")
def test_memory_is_no_more_than_a_script_takes(servers):
    server, used = servers(), {}
    for kind, fill in FILL.items():
        server.run("FLUSHALL", "SYNC")
        empty = server.info("used_memory", "memory")
        server.client.eval(f"for i = 1, 500000 do {fill} end", 1, "user:")
        used[kind] = server.info("used_memory", "memory") - empty
    assert used["bucket"] <= 1.4 * 1.01 * used["integer"], used
    assert used["bucket"] <= 1.01 * used["lua bucket"], used
