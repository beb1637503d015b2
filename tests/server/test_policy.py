"""RL.POLICY: what a policy is, where it is kept, and what becomes of it."""

from random import Random

import pytest
import redis
from harness import START_US, pairs, until
from test_persistence import AOF, rewrite_aof

FREE = "TOKENBUCKET 10/s BURST 20 QUOTA 100/day AS requests ALERT 80,95 QUOTA 50000/day AS tokens".split()
PEOPLE = "TOKENBUCKET 2/m BURST 100 OUTCOME 200:1,404:20,500:0,paid:-1,*:1".split()


@pytest.fixture(autouse=True)
def without_policies(request):
    if "server" in request.fixturenames:
        clear(request.getfixturevalue("server").client)


def clear(client):
    if names := client.execute_command("RL.POLICY", "LIST", NEVER_DECODE=True):
        client.execute_command("RL.POLICY", "DEL", *names)


def define(server, name, *words):
    assert server.run("RL.POLICY", "SET", name, *" ".join(words).split()) == "OK"


def known(server):
    """All that a server knows of policies: in bytes, and so equal where they are."""
    return server.connect().execute_command("RL.POLICY", "DUMP")


class TestGrammar:
    def test_get_tells_what_was_set(self, server):
        define(server, "free", *FREE)
        got = pairs(server.run("RL.POLICY", "GET", "free"))
        assert got["definition"] == FREE
        assert [pairs(rule) for rule in got["rules"]] == [
            {"name": "tokenbucket", "kind": "tokenbucket", "rule": "10/s BURST 20", "keep_ms": 0},
            {"name": "requests", "kind": "quota", "rule": "100/day ALERT 80,95", "keep_ms": 0},
            {"name": "tokens", "kind": "quota", "rule": "50000/day", "keep_ms": 0},
        ]
        assert (got["name"], got["shadow"], got["percent"]) == ("free", 0, 100)

    def test_every_counting_kind(self, server):
        define(server, "all", "TOKENBUCKET 1/s LEAKY 5/m BURST 2 AS paced FIXED 9/m ALIGN",
               "SLIDING 5/h SLOTS 10 KEEP 1d SLIDING 5/m EXACT AS exact",
               "QUOTA 0/month ANCHOR 31 TZ America/Sao_Paulo HISTORY 3 KEEP 366d")  # fmt: skip
        rules = [pairs(rule) for rule in pairs(server.run("RL.POLICY", "GET", "all"))["rules"]]
        assert [rule["kind"] for rule in rules] == ["tokenbucket", "leaky", "fixed", "sliding", "sliding", "quota"]
        assert [rule["keep_ms"] for rule in rules] == [0, 0, 0, 86400000, 0, 366 * 86400000]

    @pytest.mark.parametrize(
        "words, complaint",
        [
            ("", "wrong number of arguments"),
            ("SHADOW", "at least one rule"),
            ("TOKENBUCKET", "rate needs a value"),
            ("TOKENBUCKET 5", "rate must be"),
            ("TOKENBUCKET 1/s BURST", "BURST needs"),
            ("TOKENBUCKET 1/366d BURST 10", "ten years"),
            ("SLIDING 65537/s", "SLOTS"),
            ("ACQUIRE 5 1s", "'ACQUIRE' is none"),
            ("LEASES 5 1s", "'LEASES' is none"),
            ("TOKENBUCKET 1/s COST 2", "'COST' is none"),
            ("TOKENBUCKET 1/s KEEP 5", "KEEP needs a unit"),
            ("TOKENBUCKET 1/s KEEP 5s KEEP 5s", "twice"),
            ("TOKENBUCKET 1/s TOKENBUCKET 2/s", "same name"),
            ("TOKENBUCKET 1/s TOKENBUCKET 2/s", "same name"),
            ("TOKENBUCKET 1/s AS a QUOTA 1/day AS a", "same name"),
            ("TOKENBUCKET 1/s AS a=b", "AS must be"),
            ("TOKENBUCKET 1/s AS a,b", "AS must be"),
            ("TOKENBUCKET 1/s AS " + "x" * 129, "AS must be"),
            (" ".join(f"FIXED 1/s AS r{n}" for n in range(9)), "at most 8"),
            ("QUOTA 1/day TZ Nowhere/Land", "TZ"),
            ("FIXED 1/s OUTCOME", "OUTCOME needs"),
            ("FIXED 1/s OUTCOME a", "label:cost"),
            ("FIXED 1/s OUTCOME a:1,", "label:cost"),
            ("FIXED 1/s OUTCOME :1", "label:cost"),
            ("FIXED 1/s OUTCOME a:--1", "label:cost"),
            ("FIXED 1/s OUTCOME a:1000000000001", "label:cost"),
            ("FIXED 1/s OUTCOME a:1,a:2", "each label once"),
            ("FIXED 1/s OUTCOME " + ",".join(f"l{n}:1" for n in range(65)), "at most 64"),
            ("FIXED 1/s ADAPT cpu", "ADAPT needs"),
            ("FIXED 1/s ADAPT cpu 70", "load:percent"),
            ("FIXED 1/s ADAPT cpu 70:0", "load:percent"),
            ("FIXED 1/s ADAPT cpu 70:50,70:20", "ascending"),
            ("FIXED 1/s ADAPT cpu 70:1001", "load:percent"),
            ("FIXED 1/s SHADOW SHADOW", "twice"),
            ("FIXED 1/s OUTCOME a:" + "0" * 20000 + "1", "16384"),
        ],
        ids=lambda text: text[:30],
    )
    def test_what_is_wrong_is_named_and_nothing_is_set(self, server, words, complaint):
        with pytest.raises(redis.ResponseError, match=complaint):
            server.run("RL.POLICY", "SET", "p", *words.split())
        assert server.run("RL.POLICY", "LIST") == []

    def test_names_are_any_bytes(self, server):
        raw = server.connect()
        for name in (b"\x00\xff\r\n", b"x" * 128, b" ", "größe".encode()):
            assert raw.execute_command("RL.POLICY", "SET", name, "FIXED", "1/s") == b"OK"
            assert raw.execute_command("RL.TAKE", name, name)[0] == 1
        assert raw.execute_command("RL.POLICY", "LIST", "x*") == [b"x" * 128]
        for name in (b"", b"x" * 129):
            with pytest.raises(redis.ResponseError, match="1 to 128 bytes"):
                raw.execute_command("RL.POLICY", "SET", name, "FIXED", "1/s")
        raw.execute_command("RL.POLICY", "DEL", *raw.execute_command("RL.POLICY", "LIST"))

    def test_list_and_del(self, server):
        for name in ("b", "a", "ab", "[x]"):
            define(server, name, "FIXED 1/s")
        assert server.run("RL.POLICY", "LIST") == ["[x]", "a", "ab", "b"]
        patterns = {
            "a*": ["a", "ab"],
            "?": ["a", "b"],
            "[a-b]": ["a", "b"],
            r"\[x]": ["[x]"],
            "*b": ["ab", "b"],
            "": [],
        }
        for pattern, expected in patterns.items():
            assert server.run("RL.POLICY", "LIST", pattern) == expected
        assert server.run("RL.POLICY", "DEL", "a", "nobody", "ab") == 2
        assert server.run("RL.POLICY", "LIST") == ["[x]", "b"]
        assert server.first_line("RL.POLICY", "GET", "a").startswith("-NOPOLICY ")

    def test_there_is_room_for_4096(self, server):
        pipeline = server.client.pipeline(transaction=False)
        for n in range(4097):
            pipeline.execute_command("RL.POLICY", "SET", f"p{n}", "FIXED", "1/s")
        replies = pipeline.execute(raise_on_error=False)
        assert replies[:4096] == ["OK"] * 4096 and "4096" in str(replies[4096])
        define(server, "p7", "FIXED 2/s")
        assert server.run("RL.TAKE", "k", "p4095")[0] == 1


class TestKept:
    def test_flushall_keeps_them(self, server):
        define(server, "free", *FREE)
        server.run("FLUSHALL")
        assert server.run("RL.POLICY", "LIST") == ["free"]

    def test_reload(self, server):
        define(server, "free", *FREE)
        server.run("RL.POLICY", "SCALE", "free", 50, "FOR", "1h")
        server.run("RL.LOAD", "cpu", 90)
        before = known(server)
        server.run("DEBUG", "RELOAD")
        assert known(server) == before

    def test_restart_from_rdb(self, servers):
        server = servers()
        define(server, "free", *FREE)
        define(server, "people", *PEOPLE)
        server.run("SAVE")
        before = known(server)
        assert known(server.restart()) == before

    @pytest.mark.parametrize("preamble", ["yes", "no"])
    @pytest.mark.parametrize("keys", ["some", "none"])
    def test_restart_from_aof(self, servers, preamble, keys):
        server = servers(*AOF, "--aof-use-rdb-preamble", preamble)
        define(server, "free", *FREE)
        define(server, "gone", *FREE)
        server.run("RL.POLICY", "DEL", "gone")
        server.run("RL.POLICY", "SCALE", "free", 50, "FOR", "1h")
        server.run("RL.LOAD", "cpu", 90, "FOR", "1h")
        if keys == "some":
            server.run("RL.TAKE", "k", "free")
        before = known(server), server.contents()
        assert (known(server.restart()), server.contents()) == before, "a log alone"
        rewrite_aof(server)
        assert (known(server.restart()), server.contents()) == before, "rewritten"
        define(server, "people", *PEOPLE)
        before = known(server), server.contents()
        assert (known(server.restart()), server.contents()) == before, "rewritten, then more"

    def test_aof_turned_on_later(self, servers):
        server = servers("--aof-use-rdb-preamble", "no")
        define(server, "free", *FREE)
        before = known(server)
        server.run("CONFIG", "SET", "appendonly", "yes")
        until(lambda: not server.info("aof_rewrite_in_progress") and server.info("aof_enabled"), "the first rewrite")
        until(lambda: any(command[0] == b"RL.POLICY" for command in server.logged()), "the policies in the log")
        commands = {command[0].upper() for command in server.logged()}
        assert commands <= {b"SELECT", b"RL.POLICY"}, "and not what led to the rewrite"
        server.options += AOF
        assert known(server.restart()) == before

    def test_a_rewrite_while_writes_are_paused(self, servers):
        server = servers(*AOF, "--aof-use-rdb-preamble", "no")
        define(server, "free", *FREE)
        before = known(server)
        server.run("CLIENT", "PAUSE", 300, "WRITE")
        server.run("BGREWRITEAOF")
        until(lambda: any(b"RESTORE" in command for command in server.logged()), "the policies after the pause")
        assert known(server.restart()) == before

    def test_an_empty_node_saves_loadable_files(self, servers):
        server = servers()
        server.run("SET", "k", "v")
        server.run("SAVE")
        assert server.restart().run("GET", "k") == "v"


class TestReplicas:
    def test_they_follow_and_refuse_writes(self, servers):
        primary, replica = servers(), servers()
        define(replica, "stale", "FIXED 1/s")
        define(primary, "early", *FREE)
        replica.follow(primary)
        define(primary, "late", *PEOPLE)
        primary.run("RL.POLICY", "SCALE", "late", 10, "FOR", "1h")
        primary.run("RL.LOAD", "cpu", 90, "FOR", "1h")
        primary.wait_for(replica)
        assert known(replica) == known(primary)
        for command in (["SET", "x", "FIXED", "1/s"], ["DEL", "early"], ["SCALE", "early", "5"], ["RESTORE", "x"]):
            with pytest.raises(redis.ReadOnlyError):
                replica.run("RL.POLICY", *command)
        with pytest.raises(redis.ReadOnlyError):
            replica.run("RL.LOAD", "cpu", 5)
        primary.run("RL.TAKE", "k", "late")
        primary.wait_for(replica)
        assert pairs(replica.run("RL.STATE", "k"))["percent"] == 10
        primary.kill()
        replica.run("REPLICAOF", "NO", "ONE")
        assert replica.run("RL.TAKE", "k", "late")[:3] == [1, 10, 8]

    @pytest.mark.parametrize("mode", ["disabled", "swapdb", "on-empty-db"])
    def test_a_full_sync_replaces_them(self, servers, mode):
        primary, replica = servers(), servers("--repl-diskless-load", mode)
        define(primary, "one", *FREE)
        replica.follow(primary)
        assert replica.run("RL.POLICY", "LIST") == ["one"]
        replica.run("REPLICAOF", "NO", "ONE")
        define(replica, "stale", "FIXED 1/s")
        define(primary, "two", *PEOPLE)
        replica.follow(primary)
        until(lambda: replica.run("RL.POLICY", "LIST") == ["one", "two"], "the primary's policies")
        assert known(replica) == known(primary)

    def test_keys_need_no_policy_to_be_equal(self, servers):
        primary, replica = servers(), servers()
        replica.follow(primary)
        define(primary, "p", "TOKENBUCKET 5/h QUOTA 9/day AS daily SLIDING 7/h KEEP 1d")
        for server in (primary, replica):
            server.clock.freeze()
        primary.run("RL.TAKE", "k", "p", "COST", 3)
        define(primary, "p", "SLIDING 7/h AS other TOKENBUCKET 7/h AS tokenbucket2 FIXED 3/m")
        primary.run("RL.TAKE", "k", "p", "COST", "other=2,fixed=1")
        primary.run("RL.POLICY", "DEL", "p")
        primary.wait_for(replica)
        assert replica.contents() == primary.contents()


class TestDump:
    def test_it_fills_a_new_node(self, server, servers):
        define(server, "free", *FREE)
        define(server, "people", *PEOPLE)
        server.run("RL.LOAD", "cpu", 90)
        other = servers()
        other.clock.freeze()
        raw = other.connect()
        assert raw.execute_command("RL.POLICY", "RESTORE", known(server)) == b"OK"
        assert known(other) == known(server)
        with pytest.raises(redis.ResponseError, match="REPLACE"):
            raw.execute_command("RL.POLICY", "RESTORE", known(server))
        define(other, "free", "FIXED 1/s")
        assert raw.execute_command("RL.POLICY", "RESTORE", known(server), "REPLACE") == b"OK"
        assert known(other) == known(server)

    def test_one_policy(self, server):
        define(server, "free", *FREE)
        define(server, "people", *PEOPLE)
        raw = server.connect()
        one = raw.execute_command("RL.POLICY", "DUMP", "people")
        clear(server.client)
        raw.execute_command("RL.POLICY", "RESTORE", one)
        assert server.run("RL.POLICY", "LIST") == ["people"]

    def test_all_or_nothing(self, server):
        define(server, "a", "FIXED 1/s")
        define(server, "b", "FIXED 2/s")
        dump = known(server)
        server.run("RL.POLICY", "DEL", "a")
        with pytest.raises(redis.ResponseError, match="nothing was restored"):
            server.connect().execute_command("RL.POLICY", "RESTORE", dump)
        assert server.run("RL.POLICY", "LIST") == ["b"]

    def test_a_broken_payload_is_an_error(self, server):
        define(server, "free", *FREE)
        define(server, "people", *PEOPLE)
        server.run("RL.LOAD", "cpu", 90)
        dump = known(server)
        clear(server.client)
        random = Random(5)
        pipeline = server.connect().pipeline(transaction=False)
        for n in range(3000):
            body = bytearray(dump[:-8])
            for _ in range(random.randrange(1, 4)):
                body[random.randrange(4, len(body))] = random.choice([0, 1, 2, 127, 128, 255, random.randrange(256)])
            if n % 3 == 0:
                del body[random.randrange(4, len(body)) :]
            pipeline.execute_command("RL.POLICY", "RESTORE", with_checksum(bytes(body)), "REPLACE")
        for broken in (b"", b"x", dump[:-1], dump + b"x", dump[:-8] + bytes(8)):
            pipeline.execute_command("RL.POLICY", "RESTORE", broken, "REPLACE")
        replies = pipeline.execute(raise_on_error=False)
        assert all(isinstance(reply, redis.ResponseError) for reply in replies[-5:])
        assert sum(isinstance(reply, redis.ResponseError) for reply in replies) > 1500
        server.run("DEBUG", "RELOAD")


def with_checksum(body):
    h = 14695981039346656037
    for byte in body:
        h = (h ^ byte) * 1099511628211 & (1 << 64) - 1
    return body + h.to_bytes(8, "little")


class TestRights:
    WRITES = ["rl.policy|set", "rl.policy|del", "rl.policy|scale", "rl.policy|restore", "rl.load", "rl.top"]

    def test_writing_needs_admin(self, server):
        define(server, "free", *FREE)
        categories = "rl.policy|set" in server.run("ACL", "CAT", "admin")  # Redis 7.0 has none for modules
        rights = ["-@admin"] if categories else [f"-{name}" for name in self.WRITES]
        server.run("ACL", "SETUSER", "app", "reset", "on", "nopass", "~*", "+@all", *rights)
        app = server.connect(username="app", password="x", decode_responses=True)
        assert app.execute_command("RL.TAKE", "k", "free")[0] == 1
        assert app.execute_command("RL.POLICY", "LIST") == ["free"]
        assert app.execute_command("RL.POLICY", "GET", "free")
        assert app.execute_command("RL.STATS", "free")
        for name in self.WRITES:
            with pytest.raises(redis.exceptions.NoPermissionError):
                app.execute_command(*name.split("|"), "free", "50", "x")

    def test_clients_learn_that_every_primary_needs_them(self, server):
        raw = server.connect()
        raw.response_callbacks = {}
        for name in ("rl.policy|set", "rl.policy|del", "rl.policy|scale", "rl.policy|restore", "rl.load"):
            (info,) = raw.execute_command("COMMAND", "INFO", name)
            assert {b"request_policy:all_shards", b"response_policy:all_succeeded"} <= set(info[7]), name


@pytest.mark.topologies("cluster")
def test_cluster(db):
    for node in db.nodes:
        clear(node)
        node.execute_command("RL.POLICY", "SET", "free", *FREE)
    client = db.env.envRunner.getClusterConnection()
    for n in range(50):
        assert client.execute_command("RL.TAKE", f"user:{n}", "free")[0] == 1
    with pytest.raises(redis.ResponseError, match="CROSSSLOT|slot"):
        db.node("a").execute_command("RL.TAKEALL", 2, "a", "free", "b", "free")
    replies = db.node("{org}").execute_command("RL.TAKEALL", 2, "{org}:a", "free", "{org}", "free")
    assert [reply[0] for reply in replies] == [1, 1]
    for node in db.nodes:
        clear(node)


class TestScale:
    def test_it_tightens_for_a_while(self, server):
        define(server, "p", "TOKENBUCKET 10/s BURST 20 FIXED 5/m QUOTA 7/day SLIDING 9/m")
        server.run("RL.POLICY", "SCALE", "p", 50, "FOR", "10s")
        state = pairs(server.run("RL.STATE", "k", "POLICY", "p"))
        rules = {name: pairs(rule) for name, rule in pairs(state["rules"]).items()}
        assert {name: rule["limit"] for name, rule in rules.items()} == {
            "tokenbucket": 10, "fixed": 2, "quota": 3, "sliding": 4,
        }  # fmt: skip
        assert pairs(server.run("RL.POLICY", "GET", "p"))["scale_until_ms"] == START_US // 1000 + 10000
        server.clock.advance(ms=9999)
        assert pairs(server.run("RL.STATE", "k", "POLICY", "p"))["percent"] == 50
        server.clock.advance(ms=1)
        assert pairs(server.run("RL.STATE", "k", "POLICY", "p"))["percent"] == 100
        assert "scale_until_ms" not in pairs(server.run("RL.POLICY", "GET", "p"))

    def test_default_is_a_minute(self, server):
        define(server, "p", "FIXED 100/h")
        server.run("RL.POLICY", "SCALE", "p", 1)
        server.clock.advance(ms=59_999)
        assert server.run("RL.TAKE", "k", "p", "PEEK")[1] == 1
        server.clock.advance(ms=1)
        assert server.run("RL.TAKE", "k", "p", "PEEK")[1] == 100

    def test_limits_are_at_least_one_but_at_zero(self, server):
        define(server, "p", "TOKENBUCKET 10/h FIXED 10/h SLIDING 10/h QUOTA 10/day SLIDING 10/h SLOTS 5 AS slots")
        server.run("RL.POLICY", "SCALE", "p", 1, "FOR", "1h")
        assert server.run("RL.TAKE", "k", "p", "PEEK")[1] == 1
        server.run("RL.POLICY", "SCALE", "p", 0, "FOR", "1s")
        assert server.run("RL.TAKE", "k", "p") == [0, 0, 0, 1000, 0, "tokenbucket"]
        assert server.run("RL.TAKE", "k", "p", "COST", 3, "UPTO")[:4] == [0, 0, 0, 1000]
        assert server.run("RL.TAKE", "k", "p", "COST", 11)[3] == -1
        assert server.run("RL.TAKE", "k", "p", "COST", 2, "FORCE")[:3] == [2, 0, -2]
        server.run("DEBUG", "RELOAD")
        server.clock.advance(ms=1000)
        assert server.run("RL.TAKE", "k", "p", "COST", 8)[:3] == [8, 10, 0]

    def test_rates_slow_down_exactly(self, server):
        define(server, "p", "TOKENBUCKET 7/s")
        server.run("RL.POLICY", "SCALE", "p", 29, "FOR", "366d")  # two of 7, at 7 in 100/29 s
        assert server.run("RL.TAKE", "k", "p", "COST", 2) == [2, 2, 0, 0, 986, "tokenbucket"]
        assert server.run("RL.TAKE", "k", "p")[3] == 493  # 492.61

    def test_the_extremes_fit(self, server):
        define(server, "p", "TOKENBUCKET 1000000000000/366d AS a TOKENBUCKET 1/366d BURST 9 AS b",
               "TOKENBUCKET 1000000000000/ms AS c ADAPT x 0:997")  # fmt: skip
        for scale, load in ((999, 1), (1, 1), (1000, 0), (7, 1000)):
            server.run("RL.POLICY", "SCALE", "p", scale, "FOR", "366d")
            server.run("RL.LOAD", "x", load, "FOR", "366d")
            reply = server.run("RL.TAKE", f"k{scale}", "p", "COST", "a=1,b=1,c=1")
            assert reply[0] == 1 and reply[2] >= 0
            assert server.run("RL.TAKE", f"k{scale}", "p", "COST", "c=1000000000000", "FORCE")[0] == 10**12
            assert server.run("RL.STATE", f"k{scale}")
        before = server.contents()
        server.run("DEBUG", "RELOAD")
        assert server.contents() == before

    def test_loads_adapt_and_multiply(self, server):
        define(server, "p", "FIXED 1000/h ADAPT cpu 70:75,90:50")
        for load, limit in ((0, 1000), (69, 1000), (70, 750), (89, 750), (90, 500), (1000, 500)):
            server.run("RL.LOAD", "cpu", load)
            assert server.run("RL.TAKE", "k", "p", "PEEK")[1] == limit
        server.run("RL.POLICY", "SCALE", "p", 10, "FOR", "30s")
        assert server.run("RL.TAKE", "k", "p", "PEEK")[1] == 50
        server.clock.advance(ms=30_000)
        assert server.run("RL.TAKE", "k", "p", "PEEK")[1] == 500
        server.clock.advance(ms=30_000)
        assert server.run("RL.TAKE", "k", "p", "PEEK")[1] == 1000, "a reporter that died leaves the plain limit"

    def test_set_keeps_the_scale(self, server):
        define(server, "p", "FIXED 1000/h")
        server.run("RL.POLICY", "SCALE", "p", 10)
        define(server, "p", "FIXED 2000/h")
        assert server.run("RL.TAKE", "k", "p", "PEEK")[1] == 200

    @pytest.mark.parametrize("words", ["101 FOR", "1001", "-1", "x", "50 FOR 5", "50 FOR 1s FOR 1s", "50 TILL 5s"])
    def test_bad_arguments(self, server, words):
        define(server, "p", "FIXED 1000/h")
        for command in (["RL.POLICY", "SCALE", "p"], ["RL.LOAD", "cpu"]):
            with pytest.raises(redis.ResponseError):
                server.run(*command, *words.split())
        assert server.run("RL.TAKE", "k", "p", "PEEK")[1] == 1000

    def test_there_is_room_for_1024_loads(self, server):
        pipeline = server.client.pipeline(transaction=False)
        for n in range(1025):
            pipeline.execute_command("RL.LOAD", f"source{n}", 50, "FOR", "1s")
        replies = pipeline.execute(raise_on_error=False)
        assert replies[0] == "OK" and "1024" in str(replies[1024])
        server.clock.advance(ms=1000)
        assert server.run("RL.LOAD", "another", 50) == "OK", "those that have ended make room"


@pytest.mark.parametrize("seed", range(6))
def test_wait_is_exact_through_every_change(server, seed):
    """After wait_ms the same call passes, a millisecond earlier it does not, whatever ends in between."""
    random = Random(seed)
    define(server, "p", "TOKENBUCKET 9/13s BURST 8 SLIDING 10/20s FIXED 9/17s SLIDING 12/30s SLOTS 7 AS slots",
           "QUOTA 300/hour ADAPT cpu 10:40,60:170")  # fmt: skip
    refused = 0
    for n in range(40):
        server.clock.freeze(START_US + n * 10**9 + random.randrange(10**6))
        server.run(
            "RL.POLICY", "SCALE", "p", random.choice([0, 30, 60, 100, 250]), "FOR", f"{random.randrange(1, 9000)}ms"
        )
        server.run("RL.LOAD", "cpu", random.choice([0, 20, 80]), "FOR", f"{random.randrange(1, 12000)}ms")
        key = f"k{n}"
        for _ in range(random.randrange(4)):
            server.run("RL.TAKE", key, "p", "COST", random.randrange(1, 5), *random.choice([[], ["FORCE"]]))
            server.clock.advance(us=random.randrange(-(10**6), 3 * 10**6))
        cost = random.choice(
            [
                [],
                ["COST", random.randrange(1, 9)],
                ["COST", f"tokenbucket={random.randrange(1, 9)},slots=3"],
                ["COST", 5, "UPTO"],
            ]  # fmt: skip
        )
        reply = server.run("RL.TAKE", key, "p", *cost)
        if reply[0] or reply[3] < 0:
            continue
        refused += 1
        now = server.clock.now_us
        server.clock.freeze(now + (reply[3] - 1) * 1000)
        assert server.run("RL.TAKE", key, "p", *cost, "PEEK")[0] == 0, (n, cost, reply)
        server.clock.freeze(now + reply[3] * 1000)
        assert server.run("RL.TAKE", key, "p", *cost)[0] > 0, (n, cost, reply)
    assert refused > 8


class TestStats:
    def test_policies_are_counted(self, server):
        define(server, "p", "FIXED 5/m OUTCOME ok:1")
        server.run("RL.STATS", "RESET")
        server.run("RL.TAKE", "k", "p", "COST", 4)
        server.run("RL.TAKE", "k", "p", "COST", 3)
        server.run("RL.TAKE", "k", "p", "COST", 3, "PEEK")
        server.run("RL.TAKE", "k", "p", "COST", 3, "UPTO")
        server.run("RL.TAKE", "k", "p", "REFUND", 2)
        server.run("SET", "text", "x")
        with pytest.raises(redis.ResponseError):
            server.run("RL.TAKE", "text", "p")
        assert pairs(server.run("RL.STATS", "p")) == {
            "granted_calls": 2, "granted_units": 5, "refused_calls": 1, "refused_units": 5, "refunded_calls": 1,
            "refunded_units": 2, "shadow_refused_calls": 0, "shadow_refused_units": 0, "errors": 1,
        }  # fmt: skip
        everything = pairs(server.run("RL.STATS"))
        assert pairs(pairs(everything["policies"])["p"])["granted_units"] == 5
        assert pairs(pairs(everything["commands"])["rl.take"])["granted_units"] == 5
        assert server.info("ratelimit_policy_p")["refused_calls"] == 1
        define(server, "p", "FIXED 6/m")
        assert pairs(server.run("RL.STATS", "p"))["granted_calls"] == 2, "SET goes on counting"
        assert server.run("RL.STATS", "RESET") == "OK"
        assert pairs(server.run("RL.STATS", "p"))["granted_calls"] == 0
        assert server.first_line("RL.STATS", "nobody").startswith("-NOPOLICY ")

    def test_top_finds_who_is_refused_most(self, server):
        define(server, "p", "FIXED 1/h")
        random = Random(3)
        pipeline = server.client.pipeline(transaction=False)
        for n in range(3000):
            pipeline.execute_command("RL.TAKE", f"quiet{random.randrange(300)}", "p")
            pipeline.execute_command("RL.TAKE", f"busy{n % 3}", "p")
        pipeline.execute()
        top = server.run("RL.TOP", "p", "COUNT", 3)
        assert {row[0] for row in top} == {"busy0", "busy1", "busy2"}
        assert all(999 <= count <= 999 + over for _, count, over in top)
        assert len(server.run("RL.TOP", "p", "COUNT", 64)) == 64 and len(server.run("RL.TOP", "p")) == 10
        server.run("RL.TAKE", "x" * 5000, "p")
        server.run("RL.TAKE", "x" * 5000, "p")
        server.run("RL.STATS", "RESET")
        assert server.run("RL.TOP", "p") == []
