"""RL.TAKEALL: several subjects at once, all or none."""

import pytest
import redis
from test_policy import clear, define


@pytest.fixture(autouse=True)
def without_policies(request):
    if "server" in request.fixturenames:
        clear(request.getfixturevalue("server").client)


@pytest.fixture
def pair(server):
    define(server, "user", "FIXED 5/m OUTCOME 200:1,404:20,paid:-1")
    define(server, "org", "FIXED 10/m AS shared OUTCOME 200:1,404:3,*:0")
    return server


def both(server, words=""):
    return server.run("RL.TAKEALL", 2, "u", "user", "o", "org", *words.split())


def test_all_or_none(pair):
    assert both(pair, "COST 5") == [[5, 5, 0, 0, 60_000, "fixed"], [5, 10, 5, 0, 60_000, "shared"]]
    assert both(pair) == [[0, 5, 0, 60_000, 60_000, "fixed"], [0, 10, 5, 0, 60_000, "shared"]]
    assert pair.run("RL.TAKE", "o", "org", "PEEK")[2] == 5, "nothing was taken"
    assert both(pair, "COST 6,11") == [[0, 5, 0, -1, 60_000, "fixed"], [0, 10, 5, -1, 60_000, "shared"]]


def test_a_cost_for_each(pair):
    assert [reply[:3] for reply in both(pair, "COST 2,7")] == [[2, 5, 3], [7, 10, 3]]
    assert [reply[:4] for reply in both(pair, "COST 0,3")] == [[0, 5, 3, 0], [3, 10, 0, 0]], "0 only looks"
    assert [reply[:4] for reply in both(pair, "COST 3,0")] == [[3, 5, 0, 0], [0, 10, 0, 0]]
    assert [reply[:3] for reply in both(pair, "REFUND 1,20")] == [[1, 5, 1], [10, 10, 10]]
    assert [reply[:3] for reply in both(pair, "COST 4 FORCE")] == [[4, 5, -3], [4, 10, 6]]
    assert [reply[:4] for reply in both(pair, "COST 1 PEEK")] == [[0, 5, -3, 60_000], [0, 10, 6, 0]]


def test_outcomes(pair):
    assert [reply[:3] for reply in both(pair, "OUTCOME 404")] == [[20, 5, -15], [3, 10, 7]]
    assert [reply[:3] for reply in both(pair, "OUTCOME paid")] == [[-1, 5, -14], [0, 10, 7]]
    with pytest.raises(redis.ResponseError, match="label"):
        both(pair, "OUTCOME unknown")


def test_shadow_never_stands_in_the_way(pair):
    define(pair, "user", "FIXED 5/m SHADOW")
    assert [reply[0] for reply in both(pair, "COST 6")] == [6, 6]
    assert [reply[:3] for reply in both(pair, "COST 5")] == [[0, 5, 5], [0, 10, 4]], (
        "but takes nothing where another refuses"
    )


@pytest.mark.parametrize(
    "words",
    ["0 u user", "x u user", "2 u user", "1 u", "2 u user u user", "1 u user COST", "1 u user COST -1",
     "1 u user COST 1,2", "1 u user COST 1,", "2 u user o org COST 1,2,3", "1 u user UPTO", "1 u user PEEK FORCE",
     "1 u user OUTCOME 200 COST 1", "1 u user REFUND 1 FORCE", "1 u user extra", "-1 u user", "99999999999 u user"],
)  # fmt: skip
def test_bad_arguments(pair, words):
    with pytest.raises(redis.ResponseError):
        pair.run("RL.TAKEALL", *words.split())
    assert pair.run("DBSIZE") == 0


def test_what_fails_at_one_key_changes_none(pair):
    pair.run("SET", "text", "x")
    before = pair.contents()
    assert pair.first_line("RL.TAKEALL", "2", "u", "user", "text", "org").startswith("-WRONGTYPE")
    assert pair.first_line("RL.TAKEALL", "2", "u", "user", "o", "nobody").startswith("-NOPOLICY ")
    define(pair, "slow", "TOKENBUCKET 1/366d")
    assert "ten years" in pair.first_line("RL.TAKEALL", "2", "u", "user", "o", "slow", "COST", "99", "FORCE")
    assert pair.contents() == before


def test_every_key_is_seen(pair):
    raw = pair.connect()
    raw.response_callbacks = {}
    keys = ["COMMAND", "GETKEYS", "RL.TAKEALL", "2", "u", "user", "o", "org", "COST", "1,2"]
    assert raw.execute_command(*keys) == [b"u", b"o"]
    pair.run("ACL", "SETUSER", "app", "reset", "on", "nopass", "~u", "+@all")
    app = pair.connect(username="app", password="x")
    with pytest.raises(redis.exceptions.NoPermissionError):
        app.execute_command("RL.TAKEALL", 2, "u", "user", "o", "org")
    assert pair.run("DBSIZE") == 0
    assert app.execute_command("RL.TAKEALL", 1, "u", "user")[0][0] == 1


def test_one_effect_for_each_key(servers):
    server = servers("--appendonly", "yes", "--appendfsync", "always")
    define(server, "p", "FIXED 5/h")
    server.run("RL.TAKEALL", 3, "a", "p", "b", "p", "c", "p", "COST", "1,0,2")
    effects = [command for command in server.logged() if command[0] == b"RL.APPLY"]
    assert [effect[1] for effect in effects] == [b"a", b"c"]
    before = server.contents()
    assert server.restart().contents() == before
