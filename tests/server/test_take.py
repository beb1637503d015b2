"""RL.TAKE: the rules of a policy in one key, all or none."""

import json
from random import Random

import pytest
import redis
from harness import START_US, pairs
from test_policy import clear, define

DAY_MS = 86_400_000


@pytest.fixture(autouse=True)
def without_policies(request):
    if "server" in request.fixturenames:
        clear(request.getfixturevalue("server").client)


def take(server, key, policy, words="", *more):
    return server.run("RL.TAKE", key, policy, *str(words).split(), *more)


def rules(server, key, *options):
    state = pairs(server.run("RL.STATE", key, *options))
    return {name: pairs(rule) for name, rule in pairs(state["rules"]).items()}


def used(server, key):
    return {name: rule["used"] for name, rule in rules(server, key).items()}


class TestDeciding:
    def test_all_or_none(self, server):
        define(server, "p", "TOKENBUCKET 10/s QUOTA 5/day FIXED 8/m")
        assert take(server, "k", "p", "COST 5") == [5, 5, 0, 0, 6_400_000, "quota"]
        assert take(server, "k", "p") == [0, 5, 0, 6_400_000, 6_400_000, "quota"]
        assert used(server, "k") == {"tokenbucket": 5, "quota": 5, "fixed": 5}

    def test_the_longest_wait_binds_and_never_is_longest(self, server):
        define(server, "p", "TOKENBUCKET 1/h FIXED 3/m")
        take(server, "k", "p")
        assert take(server, "k", "p") == [0, 1, 0, 3_600_000, 3_600_000, "tokenbucket"]
        assert take(server, "k", "p", "COST 3")[3:] == [-1, 3_600_000, "tokenbucket"]
        assert take(server, "k", "p", "COST fixed=4,tokenbucket=1")[3:] == [-1, 60_000, "fixed"]

    def test_least_left_in_proportion_binds_and_ties_go_to_the_first(self, server):
        define(server, "p", "FIXED 10/m AS ten FIXED 1000/m AS thousand FIXED 5/m AS five")
        assert take(server, "k", "p", "COST ten=1,thousand=100") == [1, 10, 9, 0, 60_000, "ten"]
        assert take(server, "k", "p", "COST ten=1,thousand=101")[5] == "thousand"
        assert take(server, "k", "p", "COST ten=1,five=2")[5] == "five"

    def test_a_list_charges_just_those(self, server):
        define(server, "p", "QUOTA 10/day AS requests QUOTA 5000/day AS tokens")
        assert take(server, "k", "p", "COST requests=1,tokens=1500") == [1500, 5000, 3500, 0, 6_400_000, "tokens"]
        assert take(server, "k", "p", "COST tokens=9000 FORCE")[:3] == [9000, 5000, -5500]
        assert used(server, "k") == {"requests": 1, "tokens": 10500}
        assert take(server, "k", "p", "COST requests=1")[:3] == [1, 10, 8], "tokens are not asked"
        assert take(server, "k", "p")[0] == 0
        assert take(server, "k", "p", "REFUND tokens=500,requests=9") == [500, 5000, -5000, 0, 6_400_000, "tokens"]
        assert used(server, "k") == {"requests": 0, "tokens": 10000}

    def test_upto_is_one_number_that_fits_everywhere(self, server):
        define(server, "p", "TOKENBUCKET 10/m FIXED 7/m QUOTA 100/day")
        assert take(server, "k", "p", "COST 20 UPTO PEEK") == [7, 7, 7, 0, 0, "fixed"]
        assert take(server, "k", "p", "COST 20 UPTO")[:3] == [7, 7, 0]
        assert used(server, "k") == {"tokenbucket": 7, "fixed": 7, "quota": 7}
        assert take(server, "k", "p", "COST 20 UPTO") == [0, 7, 0, 60_000, 60_000, "fixed"]
        assert take(server, "k", "p", "COST tokenbucket=9,quota=9 UPTO")[0] == 3
        with pytest.raises(redis.ResponseError, match="UPTO"):
            take(server, "k", "p", "COST tokenbucket=9,quota=8 UPTO")

    def test_peek_changes_nothing(self, server):
        define(server, "p", "TOKENBUCKET 10/m FIXED 7/m")
        assert take(server, "k", "p", "COST 7 PEEK") == [7, 7, 7, 0, 0, "fixed"]
        assert server.run("EXISTS", "k") == 0
        take(server, "k", "p", "COST 7")
        before = server.contents()
        assert take(server, "k", "p", "PEEK") == [0, 7, 0, 60_000, 60_000, "fixed"]
        assert server.contents() == before

    def test_leaky_rules_hold_what_is_granted(self, server):
        define(server, "p", "LEAKY 1/s BURST 5 FIXED 100/m LEAKY 2/s BURST 9 AS fast")
        assert [take(server, "k", "p")[3] for _ in range(3)] == [0, 1000, 2000]
        assert take(server, "k", "p", "COST fast=1")[3] == 1500
        assert take(server, "k", "p", "COST fixed=1")[3] == 0

    def test_refund(self, server):
        define(server, "p", "TOKENBUCKET 10/m FIXED 7/m")
        assert take(server, "missing", "p", "REFUND 3") == [0, 10, 10, 0, 0, "tokenbucket"]
        assert server.run("EXISTS", "missing") == 0
        take(server, "k", "p", "COST 5")
        assert take(server, "k", "p", "REFUND 2")[:4] == [2, 7, 4, 0]
        assert take(server, "k", "p", "REFUND 9")[0] == 3
        assert server.run("EXISTS", "k") == 0, "as if never used"

    def test_force_beyond_the_bounds_is_an_error_and_takes_nothing(self, server):
        define(server, "p", "FIXED 7/m TOKENBUCKET 1/h")
        with pytest.raises(redis.ResponseError, match="ten years"):
            take(server, "k", "p", "COST 100000 FORCE")
        assert server.run("EXISTS", "k") == 0

    @pytest.mark.parametrize(
        "words",
        ["COST", "COST 0", "COST -1", "COST x", "COST fixed", "COST fixed=", "COST fixed=0", "COST fixed=1,", "COST =1",
         "COST other=1", "COST fixed=1,fixed=1", "COST 1000000000001", "COST 1 COST 1", "COST 1 REFUND 1", "REFUND 0",
         "OUTCOME", "OUTCOME x", "OUTCOME ok COST 1", "OUTCOME ok FORCE", "OUTCOME ok PEEK", "OUTCOME ok UPTO", "BOO",
         "FORCE UPTO", "FORCE PEEK", "REFUND 1 PEEK", "REFUND 1 UPTO", "REFUND 1 FORCE", "KEEP 1d", "PEEK PEEK"],
    )  # fmt: skip
    def test_bad_arguments(self, server, words):
        define(server, "p", "FIXED 7/m OUTCOME ok:1")
        with pytest.raises(redis.ResponseError):
            take(server, "k", "p", words)
        assert server.run("EXISTS", "k") == 0

    def test_keys_of_other_types(self, server):
        define(server, "p", "FIXED 7/m")
        server.run("RL.FIXED", "plain", "7/m")
        server.run("SET", "text", "x")
        for key in ("plain", "text"):
            assert server.first_line("RL.TAKE", key, "p").startswith("-WRONGTYPE")
        take(server, "k", "p")
        for command in (["RL.FIXED", "k", "7/m"], ["RL.QUOTA", "k", "7/day"], ["RL.ACQUIRE", "k", "5", "1m"]):
            assert server.first_line(*command).startswith("-WRONGTYPE")
        assert server.run("TYPE", "k") == "rl-policy"
        server.clock.advance(ms=60_000)
        assert server.run("RL.STATE", "k") is None, "what has outlived itself is absent"
        assert server.run("RL.TOKENBUCKET", "k", "5/m")[0] == 1, "to every command"
        assert take(server, "plain", "p")[0] == 1

    def test_keep(self, server):
        define(server, "p", "FIXED 7/m KEEP 2d TOKENBUCKET 9/s")
        take(server, "k", "p", "COST 3")
        take(server, "k", "p", "REFUND fixed=1")
        server.clock.advance(ms=DAY_MS)
        fixed = rules(server, "k")["fixed"]
        assert (fixed["used"], fixed["granted"], fixed["last_ms"]) == (0, 2, START_US // 1000)
        server.clock.advance(ms=DAY_MS)
        assert server.run("RL.STATE", "k") is None

    def test_expiry_is_the_latest_of_the_rules(self, server):
        define(server, "p", "FIXED 7/m TOKENBUCKET 9/s FIXED 10/h AS hourly")
        server.clock.release()
        take(server, "k", "p")
        assert 3_590_000 < server.run("PTTL", "k") <= 3_600_000
        take(server, "j", "p", "COST tokenbucket=1")
        assert 0 < server.run("PTTL", "j") < 200
        take(server, "j", "p", "COST fixed=1")
        assert 50_000 < server.run("PTTL", "j") <= 60_000


class TestShadow:
    def test_it_grants_always_and_counts(self, server):
        define(server, "p", "LEAKY 5/m SHADOW")
        server.run("RL.STATS", "RESET")
        assert take(server, "k", "p", "COST 3") == [3, 5, 2, 0, 36_000, "leaky"]
        assert take(server, "k", "p", "COST 3") == [3, 5, 2, 0, 36_000, "leaky"], "charged as a real one would be"
        assert take(server, "k", "p", "COST 3 UPTO") == [3, 5, 0, 0, 60_000, "leaky"]
        assert take(server, "k", "p", "COST 9 PEEK")[:4] == [9, 5, 0, 0]
        stats = pairs(server.run("RL.STATS", "p"))
        assert (stats["granted_calls"], stats["granted_units"], stats["refused_calls"]) == (3, 9, 0)
        assert (stats["shadow_refused_calls"], stats["shadow_refused_units"]) == (1, 4)
        assert [row[0] for row in server.run("RL.TOP", "p")] == ["k"]


class TestOutcome:
    def test_the_central_banks_table(self, server):
        define(server, "person", "TOKENBUCKET 2/m BURST 100 OUTCOME 200:1,404:20,500:0,paid:-1,*:1")
        define(server, "company", "TOKENBUCKET 20/m BURST 1000 OUTCOME 200:1,404:20,500:0,paid:-2,*:1")
        assert take(server, "cpf", "person", "OUTCOME 404")[:4] == [20, 100, 80, 0]
        assert take(server, "cpf", "person", "OUTCOME 200")[:3] == [1, 100, 79]
        assert take(server, "cpf", "person", "OUTCOME 500")[:4] == [0, 100, 79, 0]
        assert take(server, "cpf", "person", "OUTCOME 429")[:3] == [1, 100, 78]
        assert take(server, "cpf", "person", "OUTCOME paid")[:3] == [-1, 100, 79]
        for _ in range(5):
            take(server, "cpf", "person", "OUTCOME 404")
        reply = take(server, "cpf", "person", "PEEK")
        assert reply[:4] == [0, 100, -21, 660_000], "in debt, Retry-After is still exact"
        server.clock.advance(ms=reply[3])
        assert take(server, "cpf", "person", "PEEK")[0] == 1
        for _ in range(40):
            take(server, "cnpj", "company", "OUTCOME paid")
        assert take(server, "cnpj", "company", "PEEK")[2] == 1000, "never above full"

    def test_a_label_that_the_table_lacks(self, server):
        define(server, "p", "FIXED 5/m OUTCOME ok:1")
        define(server, "q", "FIXED 5/m")
        for policy in "pq":
            with pytest.raises(redis.ResponseError, match="OUTCOME must be a label"):
                take(server, "k", policy, "OUTCOME other")

    def test_a_refund_of_nothing(self, server):
        define(server, "p", "FIXED 5/m OUTCOME back:-3")
        assert take(server, "k", "p", "OUTCOME back") == [0, 5, 5, 0, 0, "fixed"]
        assert server.run("EXISTS", "k") == 0


class TestChanging:
    def test_an_upgrade_keeps_what_is_used(self, server):
        define(server, "free", "QUOTA 100/day AS requests QUOTA 1000/day AS tokens QUOTA 5/month AS cost")
        define(
            server,
            "pro",
            "TOKENBUCKET 50/s QUOTA 90000/day AS tokens QUOTA 5000/day AS requests QUOTA 99/month AS cost",
        )
        take(server, "u", "free", "COST requests=100,tokens=700,cost=4")
        assert take(server, "u", "free")[:3] == [0, 100, 0]
        assert take(server, "u", "pro")[0] == 1
        assert used(server, "u") == {"tokenbucket": 1, "tokens": 701, "requests": 101, "cost": 5}
        assert take(server, "u", "free", "COST tokens=1")[:3] == [1, 1000, 298], "and back"
        assert used(server, "u") == {"requests": 101, "tokens": 702, "cost": 5}

    def test_states_pass_by_name_else_by_kind_in_order(self, server):
        define(server, "p", "FIXED 9/h AS a FIXED 9/h AS b FIXED 9/h AS c SLIDING 9/h")
        take(server, "k", "p", "COST a=1,b=2,c=3,sliding=4")
        define(server, "p", "FIXED 9/h AS x FIXED 9/h AS b FIXED 9/h AS y QUOTA 9/day AS a SLIDING 9/h AS z")
        assert {name: rule["used"] for name, rule in rules(server, "k").items()} == {
            "x": 1,
            "b": 2,
            "y": 3,
            "a": 0,
            "z": 4,
        }
        take(server, "k", "p", "COST z=1")
        assert used(server, "k") == {"x": 1, "b": 2, "y": 3, "a": 0, "z": 5}
        define(server, "p", "FIXED 9/h AS b")
        take(server, "k", "p")
        assert used(server, "k") == {"b": 3}, "what no rule claims goes"
        define(server, "p", "FIXED 9/h AS b FIXED 9/h AS x")
        assert used(server, "k") == {"b": 3, "x": 0}

    def test_another_kind_under_the_same_name_starts_anew(self, server):
        define(server, "p", "FIXED 9/h AS a")
        take(server, "k", "p", "COST 9")
        define(server, "p", "SLIDING 9/h AS a")
        assert take(server, "k", "p", "COST 2")[:3] == [2, 9, 7]
        define(server, "p", "TOKENBUCKET 9/h AS a")
        assert take(server, "k", "p", "COST 2")[:3] == [2, 9, 7]

    def test_new_limits_hold_at_the_next_call(self, server):
        define(server, "p", "FIXED 10/h")
        take(server, "k", "p", "COST 8")
        define(server, "p", "FIXED 20/h")
        assert take(server, "k", "p")[:3] == [1, 20, 11]
        define(server, "p", "FIXED 5/h")
        assert take(server, "k", "p")[:3] == [0, 5, -4]

    def test_a_deleted_policy(self, server):
        define(server, "p", "FIXED 10/h")
        define(server, "q", "FIXED 12/h")
        take(server, "k", "p", "COST 8")
        server.run("RL.POLICY", "DEL", "p")
        for command in (["RL.TAKE", "k", "p"], ["RL.STATE", "k"], ["RL.STATE", "k", "POLICY", "p"],
                        ["RL.TAKEALL", "1", "k", "p"], ["RL.TOP", "p"], ["RL.POLICY", "SCALE", "p", "5"]):  # fmt: skip
            assert server.first_line(*command).startswith("-NOPOLICY ")
        assert take(server, "k", "q")[:3] == [1, 12, 3], "another one takes over"

    def test_restore_of_a_key_whose_policy_is_unknown(self, server):
        define(server, "p", "FIXED 10/h QUOTA 9/day")
        take(server, "k", "p", "COST 8")
        raw = server.connect()
        dump, before = raw.dump("k"), server.contents()
        server.run("RL.POLICY", "DEL", "p")
        server.run("DEL", "k")
        raw.restore("k", 0, dump)
        assert server.contents() == before
        assert server.first_line("RL.STATE", "k").startswith("-NOPOLICY ")
        define(server, "p", "FIXED 10/h")
        assert take(server, "k", "p")[:3] == [1, 10, 1]


class TestTelling:
    def test_state_of_what_is_not_there_yet(self, server):
        define(server, "p", "FIXED 10/h QUOTA 9/day")
        assert server.run("RL.STATE", "k") is None
        got = rules(server, "k", "POLICY", "p", "COST", "11")
        assert (got["fixed"]["limit"], got["fixed"]["remaining"], got["fixed"]["wait_ms"]) == (10, 10, -1)
        assert got["quota"]["period_end_ms"] > got["quota"]["period_start_ms"]
        assert server.run("EXISTS", "k") == 0
        server.run("SET", "text", "x")
        assert server.first_line("RL.STATE", "text", "POLICY", "p").startswith("-WRONGTYPE")

    def test_state_in_resp3(self, server):
        define(server, "p", "FIXED 10/h")
        take(server, "k", "p")
        state = server.connect(protocol=3, decode_responses=True).execute_command("RL.STATE", "k")
        assert state["policy"] == "p" and state["rules"]["fixed"]["used"] == 1

    def test_history(self, server):
        define(server, "p", "QUOTA 9/day AS a HISTORY 5 QUOTA 90/month AS b HISTORY 5 FIXED 5/m")
        take(server, "k", "p", "COST a=3,b=4")
        server.clock.advance(ms=DAY_MS)
        assert server.run("RL.HISTORY", "k", "RULE", "a") == [[1_699_920_000_000, 3, 9]]
        assert server.run("RL.HISTORY", "k", "RULE", "b") == []
        for words in ([], ["RULE", "fixed"], ["RULE", "x"], ["RULE"]):
            with pytest.raises(redis.ResponseError, match="RULE"):
                server.run("RL.HISTORY", "k", *words)
        define(server, "q", "QUOTA 9/day HISTORY 5 FIXED 5/m")
        take(server, "j", "q")
        assert server.run("RL.HISTORY", "j") == [], "the only quota need not be named"

    def test_alerts_name_policy_and_rule(self, server):
        listener = server.client.pubsub()
        listener.subscribe("rl:alerts")
        listener.get_message(timeout=5)
        define(server, 'p"1', "QUOTA 10/day AS daily ALERT 50,80 FIXED 99/m")
        take(server, "k", 'p"1', "COST 8")
        alerts = [json.loads(listener.get_message(timeout=5)["data"]) for _ in range(2)]
        listener.close()
        assert [alert["percent"] for alert in alerts] == [50, 80]
        assert alerts[0] | {"percent": 0} == {
            "key": "k", "policy": 'p"1', "rule": "daily", "kind": "quota", "percent": 0, "used": 8, "limit": 10,
            "period_end_ms": 1_700_006_400_000,
        }  # fmt: skip


def mixed(client, seed, calls):
    """Calls of all sorts on some keys under policies that change, the clock moving both ways."""
    random = Random(seed)
    frozen_us = None if client.info("ratelimit")["ratelimit_clock"] == "real" else START_US
    kinds = [
        "TOKENBUCKET 7/h", "LEAKY 90/d BURST 30 AS b", "FIXED 9/h", "SLIDING 12/2h", "SLIDING 30/d SLOTS 9 AS s",
        "QUOTA 20/day HISTORY 4 ALERT 50", "QUOTA 5/hour AS h TZ Asia/Kathmandu", "FIXED 9/d ALIGN AS al KEEP 3d",
    ]  # fmt: skip
    words = ["", "COST 2", "COST 3 FORCE", "COST 9 UPTO", "REFUND 2", "PEEK", "OUTCOME a", "OUTCOME b", "OUTCOME c"]
    for _ in range(calls):
        if frozen_us:
            frozen_us += random.randrange(-600_000, 1_800_000) * 1000 + random.randrange(1000)
            client.execute_command("RL.DEBUG", "CLOCK", frozen_us)
        policy = f"p{random.randrange(3)}"
        roll = random.randrange(20)
        if roll == 0 or not client.execute_command("RL.POLICY", "LIST", policy):
            chosen = " ".join(random.sample(kinds, random.randrange(1, 6)))
            client.execute_command("RL.POLICY", "SET", policy, *chosen.split(), "OUTCOME", "a:2,b:-1,*:0")
        elif roll == 1:
            client.execute_command("RL.POLICY", "SCALE", policy, random.choice([0, 20, 50, 300]), "FOR", "2h")
        elif roll == 2:
            costs = random.choice(["", "COST 0,2"]).split()
            client.execute_command("RL.TAKEALL", 2, "{k}1", policy, "{k}2", policy, *costs)
        else:
            client.execute_command("RL.TAKE", f"k{random.randrange(6)}", policy, *random.choice(words).split())


@pytest.mark.parametrize("seed", range(3))
def test_copies_are_equal_after_mixed_traffic(db, seed):
    if db.topology == "cluster":
        pytest.skip("keys of several slots")
    node = db.nodes[0]
    clear(node)
    mixed(node, seed, 400)
    assert len(node.keys("*")) > 3
    clear(node)


def test_equal_with_a_real_clock_and_a_rewritten_log(servers):
    from test_persistence import AOF, rewrite_aof

    server = servers(*AOF, "--aof-use-rdb-preamble", "no")
    mixed(server.client, 7, 300)
    before = server.contents()
    assert all(expiry > 0 for expiry in before[1].values())
    assert server.restart().contents() == before
    rewrite_aof(server)
    assert server.restart().contents() == before


def test_a_refused_call_writes_nothing_but_repairs(servers):
    from test_persistence import AOF

    server = servers(*AOF)
    server.clock.freeze()
    define(server, "p", "FIXED 5/h TOKENBUCKET 9/h SLIDING 9/h")
    take(server, "k", "p", "COST 5")
    before = len(list(server.logged())), server.contents()
    take(server, "k", "p")
    take(server, "k", "p", "PEEK")
    take(server, "missing", "p", "REFUND 1")
    assert (len(list(server.logged())), server.contents()) == before
    server.clock.back(ms=7_200_000)
    reply = take(server, "k", "p")
    assert reply[0] == 0 and reply[3] == 3_600_000
    assert len(list(server.logged())) == before[0] + 1, "a step back is repaired"
    after = server.contents()
    assert after != before[1]
    take(server, "k", "p")
    assert server.contents() == after
    server.restart()
    assert server.contents() == after


@pytest.mark.parametrize("seed", range(4))
def test_a_forged_payload_is_an_error_or_a_value_that_works(server, seed):
    from test_persistence import mutated, sealed

    random, raw = Random(seed), server.connect()
    define(
        server, "p", "FIXED 5/h TOKENBUCKET 9/h SLIDING 9/h QUOTA 9/day HISTORY 3 KEEP 1d SLIDING 9/h SLOTS 3 AS slots"
    )
    take(server, "k", "p", "COST 5")
    server.clock.advance(ms=DAY_MS)
    take(server, "k", "p", "COST fixed=1,quota=1,sliding=2")
    body = raw.dump("k")[:-8]
    for _ in range(10):
        pipeline = raw.pipeline(transaction=False)
        for _ in range(50):
            pipeline.restore("k", 0, sealed(mutated(body, random)), replace=True)
            pipeline.execute_command("RL.STATE", "k", "POLICY", "p")
            pipeline.execute_command("RL.HISTORY", "k", "RULE", "quota")
            pipeline.execute_command("RL.TAKE", "k", "p", "COST", 2, "FORCE")
            pipeline.execute_command("DEL", "k")
        pipeline.execute(raise_on_error=False)
    assert raw.ping()
