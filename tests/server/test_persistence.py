"""What is written to disk is what was in memory, whatever the way there, and no file can break the server."""

import json
from functools import lru_cache
from pathlib import Path
from random import Random

import pytest
from harness import START_US, pairs, traffic, until

BUCKET = "RL.TOKENBUCKET"
GOLDEN = Path(__file__).parent / "data" / "bucket-v1.json"
GOLDEN_KINDS = Path(__file__).parent / "data" / "kinds-v1.json"
AOF = ("--appendonly", "yes", "--appendfsync", "always")


def rewrite_aof(server):
    server.run("BGREWRITEAOF")
    until(
        lambda: not server.info("aof_rewrite_in_progress") and not server.info("aof_rewrite_scheduled"), "the rewrite"
    )
    assert server.info("aof_last_bgrewrite_status") == "ok"


def fill(server, clock, seed=1):
    """With a real clock keys expire, and with a frozen one it can step back."""
    if clock == "frozen":
        server.clock.freeze()
    traffic(server.client, seed)
    assert len(server.contents()[1]) > 8


@pytest.mark.parametrize("clock", ["frozen", "real"])
class TestEqualAfterwards:
    def test_reload(self, servers, clock):
        server = servers()
        fill(server, clock)
        before = server.contents()
        server.run("DEBUG", "RELOAD")
        assert server.contents() == before

    def test_restart_from_rdb(self, servers, clock):
        server = servers()
        fill(server, clock)
        before = server.contents()
        server.run("SAVE")
        assert server.restart().contents() == before

    @pytest.mark.parametrize("preamble", ["yes", "no"])
    def test_restart_from_aof(self, servers, clock, preamble):
        server = servers(*AOF, "--aof-use-rdb-preamble", preamble)
        fill(server, clock)
        before = server.contents()
        assert server.restart().contents() == before, "a log of effects alone"
        rewrite_aof(server)
        assert server.restart().contents() == before, "rewritten"
        fill(server, clock, seed=2)
        before = server.contents()
        assert server.restart().contents() == before, "rewritten, then more effects"

    def test_a_killed_server_that_always_syncs_loses_nothing(self, servers, clock):
        server = servers(*AOF)
        fill(server, clock)
        before = server.contents()
        server.kill()
        assert server.start().contents() == before

    def test_dump_and_restore(self, server, clock):
        if clock == "real":
            server.clock.release()
        fill(server, clock)
        before = server.contents()
        raw = server.connect()
        dumps = [(key, expiry, raw.dump(key)) for key, expiry in before[1].items()]
        server.run("FLUSHALL")
        for key, expiry, dump in dumps:
            raw.restore(key, max(expiry, 0), dump, absttl=True)
        assert server.contents() == before

    def test_copy(self, server, clock):
        if clock == "real":
            server.clock.release()
        fill(server, clock)
        for key in server.contents()[1]:
            server.run("COPY", key, b"copy of " + key)
            assert server.run("DEBUG", "DIGEST-VALUE", key) == server.run("DEBUG", "DIGEST-VALUE", b"copy of " + key)
            assert server.run("PEXPIRETIME", key) == server.run("PEXPIRETIME", b"copy of " + key)


def test_a_copy_goes_its_own_way(server):
    server.run(BUCKET, "k", "10/m", "COST", 4, "KEEP", "1h")
    before = server.state("k")
    server.run("COPY", "k", "copy")
    server.run(BUCKET, "copy", "20/m", "COST", 4)
    server.run("DEL", "copy")
    assert server.state("k") == before


def test_a_replay_long_after_grants_nothing_and_loses_nothing(servers):
    """The clock of the restarted server is years ahead of the log."""
    server = servers(*AOF)
    server.clock.freeze()
    for _ in range(7):
        server.run(BUCKET, "k", "5/m")
        server.clock.advance(ms=5000)
    before = server.contents(), server.state("k")
    now_us = server.clock.now_us
    server.restart()
    server.clock.freeze(now_us)
    assert (server.contents(), server.state("k")) == before


def test_a_call_that_changes_nothing_writes_nothing(servers):
    server = servers(*AOF)
    server.clock.freeze()
    server.run(BUCKET, "k", "5/m", "COST", 5)

    def written():
        return server.info("aof_current_size"), server.info("rdb_changes_since_last_save"), len(list(server.logged()))

    before = written()
    for words in ["COST 1", "COST 9", "COST 2 UPTO", "COST 5 KEEP 1h", "PEEK", "COST 3 UPTO PEEK", "BURST 3"]:
        server.run(BUCKET, "k", "5/m", *words.split())
        server.run(BUCKET, "k", "1/h", *words.split())
    server.run(BUCKET, "missing", "5/m", "REFUND", 3)
    server.run(BUCKET, "missing", "5/m", "PEEK")
    server.run("RL.STATE", "k")
    assert written() == before
    assert server.run("EXISTS", "missing") == 0


def test_the_log_holds_effects_in_place_of_calls(servers):
    server = servers(*AOF)
    for words in ["COST 2", "REFUND 1", "COST 9 FORCE KEEP 1h", "COST 1"]:
        server.run(BUCKET, "k", "5/h", *words.split())
    assert [words[0] for words in server.logged()] == [b"SELECT"] + [b"RL.APPLY"] * 3


# ---- files that nobody wrote


@lru_cache(maxsize=None)
def crc_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x95AC9329AC4BC9B5 if byte & 1 else 0)
        table.append(byte)
    return table


def sealed(body):
    """A payload whose checksum is right, so that the module gets to see what it says."""
    crc, table = 0, crc_table()
    for byte in body:
        crc = crc >> 8 ^ table[(crc ^ byte) & 255]
    return body + crc.to_bytes(8, "little")


def mutated(body, random):
    """Some bytes of the value changed, left out or put in; the two bytes of the RDB version stay."""
    value, version = bytearray(body[:-2]), body[-2:]
    for _ in range(random.choice([1, 1, 1, 2, 5])):
        at = random.randrange(10, len(value))  # after the type and the module's name
        how = random.randrange(5)
        if how == 0:
            del value[at : at + random.choice([1, 2, 8])]
        elif how == 1:
            value[at:at] = random.randbytes(random.choice([1, 8]))
        else:
            value[at] = random.choice(
                [0, 1, 127, 128, 129, 255, value[at] ^ 1 << random.randrange(8), random.randrange(256)]
            )
    return harmless(bytes(value) + version)


def harmless(body):
    """Without lengths of 64 bits for strings: the server itself tries to allocate them, which sanitizers report."""
    return body.replace(b"\x05\x81", b"\x05\x80")


def test_the_checksum_is_the_servers(server):
    server.run(BUCKET, "k", "10/m")
    dump = server.connect().dump("k")
    assert sealed(dump[:-8]) == dump


@pytest.mark.parametrize("seed", range(4))
def test_a_forged_payload_is_an_error_or_a_value_that_works(server, seed):
    random, raw = Random(seed), server.connect()
    raw.execute_command(BUCKET, "narrow", "10/m", "COST", 4)
    raw.execute_command(BUCKET, "wide", "999999999989/366d", "BURST", 123456789, "COST", 1, "KEEP", "1h")
    bodies = [raw.dump(key)[:-8] for key in ("narrow", "wide")]
    accepted = 0
    for _ in range(20):
        pipeline = raw.pipeline(transaction=False)
        for _ in range(50):
            pipeline.restore("k", 0, sealed(mutated(random.choice(bodies), random)), replace=True)
            pipeline.execute_command("RL.STATE", "k")
            pipeline.execute_command(BUCKET, "k", "10/m", "PEEK")
            pipeline.execute_command(BUCKET, "k", "7/250ms", "COST", 2, "FORCE", "KEEP", "1s")
            pipeline.execute_command(BUCKET, "k", "10/h", "REFUND", 1)
            pipeline.execute_command("DUMP", "k")
        replies = pipeline.execute(raise_on_error=False)
        accepted += sum(reply == b"OK" for reply in replies[::6])
        refused = [str(reply) for reply in replies[::6] if reply != b"OK"]
        assert all("Bad data format" in reply for reply in refused)
    assert 0 < accepted < 1000
    before = server.contents()
    server.run("DEBUG", "RELOAD")
    assert server.contents() == before


def test_random_bytes_are_no_payload(server):
    random, raw = Random(0), server.connect()
    raw.execute_command(BUCKET, "k", "10/m")
    head, version = raw.dump("k")[:10], raw.dump("k")[-10:-8]
    for _ in range(1000):
        junk = head + harmless(random.randbytes(random.randrange(80))) + version
        with pytest.raises(Exception, match="Bad data format"):
            raw.restore("junk", 0, sealed(junk))


@pytest.mark.parametrize(
    "case", json.loads(GOLDEN.read_text()) if GOLDEN.exists() else [], ids=lambda case: case["name"]
)
def test_payloads_of_released_versions_stay_loadable(server, case):
    server.connect().restore("k", 0, bytes.fromhex(case["dump"]))
    server.clock.freeze(case["at_us"])
    assert server.state("k") == case["state"]


@pytest.mark.parametrize("case", json.loads(GOLDEN_KINDS.read_text()), ids=lambda case: case["name"])
def test_payloads_of_every_kind_stay_loadable(server, case):
    """The calls that made each payload are kept beside it: write_golden_kinds, run by hand, makes them anew."""
    for policy in case["policies"]:
        server.run(*policy)
    server.connect().restore("k", 0, bytes.fromhex(case["dump"]))
    server.clock.freeze(case["at_us"])
    assert server.run("RL.STATE", "k") == case["state"]


def write_golden_kinds(server):
    cases = json.loads(GOLDEN_KINDS.read_text())
    for case in cases:
        server.run("FLUSHALL")
        for policy in case["policies"]:
            server.run(*policy)
        for step, call in enumerate(case["calls"]):
            server.clock.freeze(START_US + 12_345 * (step + 1))
            server.run(*call)
        case.update(at_us=server.clock.now_us, dump=server.connect().dump("k").hex(), state=server.run("RL.STATE", "k"))
    GOLDEN_KINDS.write_text(json.dumps(cases, indent=1) + "\n")


def append_to_log(server, *commands):
    files = sorted((server.folder / "appendonlydir").glob("*.incr.aof"))
    with open(files[-1], "ab") as log:
        for words in commands:
            log.write(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words))


def test_broken_effects_in_a_log_are_left_out_and_told(servers):
    """Whatever the log says, the server starts, and what is sound is there."""
    server, random = servers(*AOF), Random(0)
    server.clock.freeze()
    for cost in (1, 2):
        server.run(BUCKET, "k", "10/m", "COST", cost, "KEEP", "1h")
    effects = [words[2] for words in server.logged() if words[0] == b"RL.APPLY"]
    before = server.contents()
    server.stop()
    broken = [effects[0][:n] for n in range(len(effects[0]))]
    broken += [effects[1] + b"\x00", effects[1] + effects[1], b"\x00" * 20, b"\xff" * 400, b"\x02b" + b"\xff" * 50]
    broken += [random.randbytes(random.randrange(60)) for _ in range(200)]
    append_to_log(server, *([b"RL.APPLY", b"k", effect] for effect in broken))
    append_to_log(server, [b"SET", b"after", b"x"])
    server.start()
    assert server.run("DEL", "after") == 1
    assert server.contents() == before
    assert server.log().count("can't be applied") == len(broken)


def test_forged_effects_in_a_log_never_stop_the_server(servers):
    server, random = servers(*AOF), Random(1)
    server.clock.freeze()
    server.run(BUCKET, "k", "10/m", "COST", 4, "KEEP", "1h")
    server.run(BUCKET, "k", "10/m", "REFUND", 1)
    effects = [words[2] for words in server.logged() if words[0] == b"RL.APPLY"]
    server.stop()

    def forged():
        effect = bytearray(random.choice(effects))
        for _ in range(random.choice([1, 1, 2, 4])):
            effect[random.randrange(len(effect))] = random.randrange(256)
        return bytes(effect)

    append_to_log(server, *([b"RL.APPLY", b"k%d" % random.randrange(9), forged()] for _ in range(3000)))
    server.start()
    for key in server.run("KEYS", "*"):
        assert server.state(key) is None or server.run(BUCKET, key, "10/m", "PEEK")
    before = server.contents()
    server.run("DEBUG", "RELOAD")
    assert server.contents() == before


def test_an_effect_replaces_what_another_type_left_in_its_key(servers):
    server = servers(*AOF)
    server.run(BUCKET, "k", "10/m", "COST", 4)
    effect = next(words[2] for words in server.logged() if words[0] == b"RL.APPLY")
    server.stop()
    append_to_log(server, [b"SET", b"s", b"x"], [b"RL.APPLY", b"s", effect])
    server.start()
    assert server.client.type("s") == "rl-bucket"


def test_a_log_cut_short_is_loaded_up_to_the_cut(servers):
    server = servers(*AOF)
    server.clock.freeze()
    server.run(BUCKET, "k", "10/m", "COST", 4)
    before = server.contents()
    server.run(BUCKET, "k", "10/m", "COST", 3)
    server.stop()
    file = next((server.folder / "appendonlydir").glob("*.incr.aof"))
    file.write_bytes(file.read_bytes()[:-7])
    assert server.start().contents() == before


def write_golden(server, path):
    """How bucket-v1.json was made."""
    cases, raw = [], server.connect()
    traces = {
        "one unit": ["10/s"],
        "burst": ["10/s BURST 100 COST 40"],
        "debt": ["10/s COST 25 FORCE"],
        "kept": ["10/s COST 3 KEEP 1h", "10/s REFUND 1 KEEP 30d"],
        "extreme rate": ["1000000000000/ms COST 1000000000000"],
        "slow": ["1/366d"],
        "remainder of a changed limit": ["7/250ms COST 5", "1000003/h COST 9 FORCE"],
    }
    for name, calls in traces.items():
        server.clock.freeze(START_US)
        for call in calls:
            server.clock.advance(us=12_345)
            server.run(BUCKET, name, *call.split())
        server.clock.advance(us=1)
        dump = raw.dump(name).hex()
        cases.append(
            {"name": name, "at_us": server.clock.now_us, "dump": dump, "state": pairs(server.run("RL.STATE", name))}
        )
    path.write_text(json.dumps(cases, indent=1) + "\n")
