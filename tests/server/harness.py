"""Servers of our own: started, stopped, killed and compared by the tests."""

import contextlib
import io
import itertools
import os
import shutil
import socket
import subprocess
import time
from pathlib import Path
from random import Random

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

MODULE = os.path.abspath(os.environ.get("RATELIMIT_SO", Path(__file__).parents[2] / "build" / "ratelimit.so"))
BINARY = os.environ.get("REDIS_SERVER") or shutil.which("redis-server") or "redis-server"
PRELOAD = os.environ.get("RATELIMIT_PRELOAD", "")  # a sanitizer's library
ENVIRON = {"LD_PRELOAD": PRELOAD} if PRELOAD else {}  # for the servers alone
DEFAULTS = [
    *("--save", "", "--appendonly", "no", "--repl-diskless-sync-delay", "0"),
    *("--enable-debug-command", "yes", "--enable-module-command", "yes"),
]
START_US = 1_700_000_000_000_000


def until(condition, what, seconds=20):
    """Waits for a condition of another process, and says which one never came."""
    deadline = time.monotonic() + seconds
    while not (answer := condition()):
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.005)
    return answer


# Below those that the system gives to clients, and each process starts elsewhere: a server that restarts finds its port
# free again.
PORTS = itertools.count(10_000 + os.getpid() * 97 % 20_000)


def free_port():
    for port in PORTS:
        with socket.socket() as s:
            if s.connect_ex(("127.0.0.1", port)) != 0:
                return port


def contents(client):
    """All that a server holds, to be compared: the digest knows that a key expires, but not when."""
    keys = sorted(client.execute_command("KEYS", "*", NEVER_DECODE=True))
    expiries = client.pipeline(transaction=False)
    for key in keys:
        expiries.execute_command("PEXPIRETIME", key)
    return client.execute_command("DEBUG", "DIGEST"), dict(zip(keys, expiries.execute()))


def connect(port, **options):
    """A client that reports at once what goes wrong, in place of trying again."""
    return redis.Redis("127.0.0.1", port, retry=Retry(NoBackoff(), 0), **options)


def end(client):
    """Ends a server at once, but as an operator would: what was to be written to the AOF is."""
    with contextlib.suppress(redis.ConnectionError):
        connect(client.get_connection_kwargs()["port"]).execute_command("SHUTDOWN", "NOSAVE", "NOW", "FORCE")


def pairs(flat):
    """The map that RESP2 sends as a flat array; null stays None."""
    return flat and dict(zip(flat[::2], flat[1::2]))


def traffic(client, seed, calls=150, step_ms=600_000):
    """Mixed calls: grants, refusals, debts, refunds, changed parameters. A frozen clock moves both ways."""
    random = Random(seed)
    frozen_us = None if client.info("ratelimit")["ratelimit_clock"] == "real" else START_US
    rates = ["5/h", "100/d", "7/250h", "1/366d"] + (["300000000/d", "1000000000000/366d"] if frozen_us else [])
    options = [[], ["COST", 2], ["COST", 3, "FORCE"], ["COST", 9, "UPTO"], ["REFUND", 2], ["KEEP", "2d"], ["PEEK"]]
    pipeline = client.pipeline(transaction=False)
    for _ in range(calls):
        if frozen_us:
            frozen_us += random.randrange(-step_ms, 2 * step_ms) * 1000 + random.randrange(1000)
            pipeline.execute_command("RL.DEBUG", "CLOCK", frozen_us)
        key, rate, words = f"key:{random.randrange(12)}", random.choice(rates), random.choice(options)
        pipeline.execute_command("RL.TOKENBUCKET", key, rate, *words)
    errors = [reply for reply in pipeline.execute(raise_on_error=False) if isinstance(reply, Exception)]
    assert all("ten years" in str(error) for error in errors), errors


class Clock:
    """The module's clock, on one or several servers."""

    def __init__(self, *clients):
        self.clients = clients
        self.now_us = None

    def freeze(self, at_us=START_US):
        self._set(at_us)
        self.now_us = at_us

    def advance(self, ms=0, us=0):
        self.freeze(self.now_us + ms * 1000 + us)

    def back(self, ms=0, us=0):
        self.advance(-ms, -us)

    def release(self):
        self._set("REAL")
        self.now_us = None

    def _set(self, instant):
        for client in self.clients:
            client.execute_command("RL.DEBUG", "CLOCK", instant)


class Server:
    """A server process with the module, in a folder of its own."""

    def __init__(self, folder, *options, load=(MODULE, "debug")):
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.options = options
        self.load = load
        self.port = free_port()
        self.process = None

    def start(self):
        command = [BINARY, "--port", str(self.port), "--bind", "127.0.0.1", *DEFAULTS, *self.options]
        if self.load:
            command += ["--loadmodule", *self.load]
        with open(self.folder / "log", "ab") as log:
            environ = {**os.environ, **ENVIRON}
            self.process = subprocess.Popen(command, cwd=self.folder, stdout=log, stderr=log, env=environ)
        self.client = self.connect(decode_responses=True)
        self.clock = Clock(self.client)
        until(self._answers, "the server to start")
        return self

    def _answers(self):
        assert self.process.poll() is None, self.log()[-3000:]
        try:
            return self.client.ping() and self.info("process_id", "server") == self.process.pid  # not another's
        except (redis.ConnectionError, redis.exceptions.BusyLoadingError):
            return False

    def connect(self, **options):
        return connect(self.port, **options)

    def stop(self):
        end(self.client)
        return self.process.wait(20)

    def kill(self):
        self.process.kill()
        self.process.wait(20)

    def restart(self):
        self.stop()
        return self.start()

    def log(self):
        return (self.folder / "log").read_text(errors="replace")

    def run(self, *command):
        return self.client.execute_command(*command)

    def first_line(self, *command):
        """Of the reply, as it comes over the wire: clients take the prefixes of errors away."""
        with socket.create_connection(("127.0.0.1", self.port)) as s:
            s.sendall(b"".join(redis.Connection().pack_command(*command)))
            return s.makefile("rb").readline().decode(errors="replace")

    def state(self, key, *options):
        return pairs(self.run("RL.STATE", key, *options))

    def contents(self):
        return contents(self.client)

    def logged(self):
        """The commands in the AOF, as lists of bytes, but for what a rewrite put at its beginning."""
        for file in sorted((self.folder / "appendonlydir").glob("*.incr.aof")):
            try:
                log = io.BytesIO(file.read_bytes())
            except FileNotFoundError:  # a rewrite has just made it superfluous
                continue
            while line := log.readline():
                yield [log.read(int(log.readline()[1:]) + 2)[:-2] for _ in range(int(line[1:]))]

    def info(self, field, section="everything"):
        return self.client.info(section)[field]

    def follow(self, primary):
        self.run("REPLICAOF", "127.0.0.1", primary.port)
        primary.wait_for(self)

    def wait_for(self, *replicas):
        """Returns when the replicas have all that was written here."""
        for replica in replicas:
            until(lambda r=replica: r.offset() == self.offset(), "a replica to catch up")

    def offset(self):
        info = self.client.info("replication")
        return info["master_repl_offset"] if info.get("master_link_status", "up") == "up" else None
