"""What the tests run on.

`server` is one plain server. `db` is the same commands in every topology that RLTest can build: a single server, one
with an AOF, one with a replica, a cluster; --topology picks one. Both start each test empty, with the clock frozen.
"""

from pathlib import Path

import pytest
from harness import BINARY, ENVIRON, MODULE, START_US, Clock, Server, contents, end, pairs, until
from hypothesis import HealthCheck, settings
from redis.crc import key_slot
from RLTest import Defaults, Env

TOPOLOGIES = ("single", "aof", "replica", "cluster")

settings.register_profile(
    "server", derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck)
)
settings.load_profile("server")


def pytest_addoption(parser):
    parser.addoption("--topology", choices=TOPOLOGIES, action="append", help="where tests with `db` run (default: all)")


def pytest_generate_tests(metafunc):
    if "topology" in metafunc.fixturenames:
        asked = metafunc.config.getoption("topology") or TOPOLOGIES
        only = metafunc.definition.get_closest_marker("topologies")
        chosen = [name for name in TOPOLOGIES if name in asked and (not only or name in only.args)]
        metafunc.parametrize("topology", chosen, scope="session")


@pytest.hookimpl(tryfirst=True)  # before xdist looks for its marks
def pytest_collection_modifyitems(items):
    """A topology is built once, in one process: its tests stay together, and so do those of a file."""
    for item in items:
        params = getattr(getattr(item, "callspec", None), "params", {})
        item.add_marker(pytest.mark.xdist_group(params.get("topology", item.path.stem)))


class Database:
    """The servers of a topology, behind one face."""

    def __init__(self, topology, folder):
        self.topology = topology
        kind = {
            "cluster": {"env": "oss-cluster", "shardsCount": 3},
            "aof": {"useAof": True},
            "replica": {"useSlaves": True},
        }
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Defaults, "randomize_ports", True)
            for name, value in ENVIRON.items():
                patch.setenv(name, value)
            self.env = Env(
                testName=topology,
                module=[MODULE],
                moduleArgs="debug",
                logDir=str(folder),
                redisBinaryPath=BINARY,
                enableDebugCommand=True,
                decodeResponses=True,
                **kind.get(topology, {}),
            )
        self.nodes = self.env.getOSSMasterNodesConnectionList()
        self.replica = self.env.getSlaveConnection() if topology == "replica" else None
        self.clock = Clock(*self.nodes)
        for node in self.nodes:
            node.config_set("save", "")
            node.config_set("repl-diskless-sync-delay", 0)
        if self.replica:
            until(lambda: self.replica.info("replication")["master_link_status"] == "up", "the replica to be linked")

    def stop(self):
        for client in filter(None, [*self.nodes, self.replica]):
            end(client)
        self.env.stop()
        for shard in getattr(self.env.envRunner, "shards", []):
            for left in Path("/tmp").glob(f"{shard.uuid}*"):
                left.unlink()

    def clear(self):
        for node in self.nodes:
            node.flushall()
        self.clock.freeze(START_US)

    def node(self, key):
        """A client of the server that has the key."""
        slots = 16384 // len(self.nodes) + 1  # how RLTest deals them out
        return self.nodes[key_slot(key if isinstance(key, bytes) else key.encode()) // slots]

    def run(self, command, key, *args):
        return self.node(key).execute_command(command, key, *args)

    def state(self, key, *options):
        return pairs(self.run("RL.STATE", key, *options))

    def check_copies(self):
        """Whatever a test did: what was written to disk or sent to a replica is what is in memory."""
        for node in self.nodes:
            before = contents(node)
            if self.topology == "replica":
                until(lambda n=node: offset(n) == offset(self.replica), "the replica to catch up")
                assert contents(self.replica) == before
            elif self.topology == "aof":
                node.execute_command("DEBUG", "LOADAOF")
            else:
                node.execute_command("DEBUG", "RELOAD")
            assert contents(node) == before


def offset(client):
    return client.info("replication")["master_repl_offset"]


@pytest.fixture(scope="session")
def databases(tmp_path_factory):
    """Started when first asked for."""
    started = {}

    def get(topology):
        if topology not in started:
            started[topology] = Database(topology, tmp_path_factory.mktemp(topology))
        return started[topology]

    yield get
    for database in started.values():
        database.stop()


@pytest.fixture
def db(topology, databases):
    database = databases(topology)
    database.clear()
    yield database
    database.check_copies()


@pytest.fixture(scope="session")
def one_server(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("server"), "--rdbcompression", "no").start()
    yield server
    server.stop()


@pytest.fixture
def server(one_server):
    one_server.run("FLUSHALL")
    one_server.clock.freeze()
    yield one_server
    assert one_server.client.ping()


@pytest.fixture
def servers(tmp_path):
    """Makes servers that end with the test."""
    made = []

    def make(*options, **kwargs):
        made.append(Server(tmp_path / str(len(made)), *options, **kwargs).start())
        return made[-1]

    yield make
    for server in made:
        server.stop()
