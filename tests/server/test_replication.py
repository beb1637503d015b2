"""A primary, its replica and the replica's replica are equal after any traffic, whatever their clocks."""

import pytest
import redis
from harness import START_US, Server, traffic, until

BUCKET = "RL.TOKENBUCKET"
HOUR_US = 3_600_000_000


@pytest.fixture(scope="module")
def chained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("chain")
    servers = [Server(folder / name).start() for name in ("primary", "replica", "second")]
    for primary, replica in zip(servers, servers[1:]):
        replica.follow(primary)
    yield servers
    for server in reversed(servers):
        server.stop()


@pytest.fixture
def chain(chained):
    """Their clocks are hours apart, and only the primary's moves."""
    for n, server in enumerate(chained):
        server.clock.freeze(START_US + n * 5 * HOUR_US)
    chained[0].run("FLUSHALL")
    return chained


def check_equal(servers):
    servers[0].wait_for(*servers[1:])
    assert [server.contents() for server in servers[1:]] == [servers[0].contents()] * (len(servers) - 1)


@pytest.mark.parametrize("seed", range(5))
def test_equal_after_mixed_traffic_with_steps_back(chain, seed):
    traffic(chain[0].client, seed, calls=400)
    check_equal(chain)


def test_equal_with_real_clocks_and_expiry(chain):
    for server in chain:
        server.clock.release()
    traffic(chain[0].client, seed=9, calls=400)
    check_equal(chain)
    assert all(expiry > 0 for expiry in chain[1].contents()[1].values())


def test_equal_in_transactions_and_scripts(chain):
    transaction = chain[0].client.pipeline(transaction=True)
    for _ in range(4):
        transaction.execute_command(BUCKET, "k", "3/m")
    transaction.execute()
    chain[0].client.eval("for i = 1, 5 do redis.call('RL.TOKENBUCKET', KEYS[1], '4/m') end", 1, "script")
    check_equal(chain)
    assert chain[1].state("script") is None, "a replica tells the time by its own clock"


def test_what_changes_nothing_is_not_replicated(chain):
    chain[0].run(BUCKET, "k", "5/m", "COST", 5)
    check_equal(chain)
    before = chain[0].offset()
    for words in ["COST 1", "COST 9", "COST 2 UPTO", "PEEK", "COST 1 KEEP 1h"]:
        chain[0].run(BUCKET, "k", "5/m", *words.split())
    chain[0].run(BUCKET, "missing", "5/m", "REFUND", 1)
    assert chain[0].offset() == before


def test_a_repair_is_replicated_though_the_call_is_refused(chain):
    chain[0].run(BUCKET, "k", "5/m", "COST", 5)
    before = chain[0].contents()
    chain[0].clock.back(ms=86_400_000)
    assert chain[0].run(BUCKET, "k", "5/m")[0] == 0
    assert chain[0].contents() != before
    check_equal(chain)


def test_a_peek_repairs_nothing(chain):
    chain[0].run(BUCKET, "k", "5/m", "COST", 5)
    before = chain[0].contents()
    chain[0].clock.back(ms=86_400_000)
    chain[0].run(BUCKET, "k", "5/m", "PEEK")
    assert chain[0].contents() == before


def test_a_replica_decides_nothing(chain):
    with pytest.raises(redis.ReadOnlyError):
        chain[1].run(BUCKET, "k", "5/m")


def test_a_deleted_key_is_deleted_everywhere(chain):
    chain[0].run(BUCKET, "k", "5/m", "COST", 3)
    chain[0].run(BUCKET, "k", "5/m", "REFUND", 3)
    check_equal(chain)
    assert chain[2].run("EXISTS", "k") == 0


def test_a_replica_that_lost_its_link_catches_up(chain):
    primary, replica, _ = chain
    resyncs = primary.info("sync_partial_ok")
    traffic(primary.client, seed=20)
    primary.run("CLIENT", "KILL", "TYPE", "replica")
    traffic(primary.client, seed=21)
    until(lambda: primary.info("sync_partial_ok") > resyncs, "a partial resync")
    check_equal(chain)


def test_a_replica_that_comes_late_gets_everything(servers):
    primary, replica = servers(), servers()
    primary.clock.freeze()
    traffic(primary.client, seed=3)
    replica.follow(primary)
    check_equal([primary, replica])
    traffic(primary.client, seed=4)
    check_equal([primary, replica])


@pytest.mark.parametrize("load", ["swapdb", "on-empty-db"])
def test_a_full_resync_without_a_disk(servers, load):
    primary, replica = servers(), servers("--repl-diskless-load", load)
    primary.clock.freeze()
    traffic(primary.client, seed=5)
    replica.follow(primary)
    check_equal([primary, replica])


def test_a_promoted_replica_goes_on_where_the_primary_was(servers):
    primary, replica = servers(), servers()
    replica.follow(primary)
    for server in (primary, replica):
        server.clock.freeze()
    primary.run(BUCKET, "k", "5/m", "COST", 4)
    primary.wait_for(replica)
    primary.kill()
    replica.run("REPLICAOF", "NO", "ONE")
    assert [replica.run(BUCKET, "k", "5/m") for _ in range(2)] == [[1, 5, 0, 0, 60000], [0, 5, 0, 12000, 60000]]


@pytest.mark.parametrize("preamble", ["yes", "no"])
def test_the_aof_of_a_replica_is_complete(servers, preamble):
    primary, replica = servers(), servers("--appendonly", "yes", "--aof-use-rdb-preamble", preamble)
    primary.clock.freeze()
    traffic(primary.client, seed=6)
    replica.follow(primary)
    until(
        lambda: not replica.info("aof_rewrite_in_progress") and not replica.info("aof_rewrite_scheduled"), "the rewrite"
    )
    traffic(primary.client, seed=7)
    check_equal([primary, replica])
    before = primary.contents()
    assert replica.restart().contents() == before
