"""Load: calls packed beforehand and written to a socket, and redis-benchmark for many connections at once."""

import collections
import csv
import io
import random
import select
import shutil
import subprocess
import time

PIPELINE = 50
DIGITS = "%012d"  # as redis-benchmark writes __rand_int__


class Calls:
    """One or more commands as a template in bytes; KEY in its words stands for a key, by number."""

    def __init__(self, commands, slug):
        self.slug = slug
        self.commands = [[str(word).replace("KEY", f"{slug}:{DIGITS}") for word in words] for words in commands]
        packed = []
        for words in self.commands:
            sizes = [len(word) + word.count(DIGITS) * (12 - len(DIGITS)) for word in words]
            packed.append(f"*{len(words)}\r\n" + "".join(f"${n}\r\n{w}\r\n" for n, w in zip(sizes, words)))
        text = "".join(packed)
        self.holes = text.count(DIGITS)
        self.template = text.encode()

    def at(self, number):
        return self.template % ((number,) * self.holes)

    def words(self, number):
        return [[word % ((number,) * word.count(DIGITS)) for word in words] for words in self.commands]

    def batches(self, numbers):
        return [b"".join(map(self.at, numbers[i : i + PIPELINE])) for i in range(0, len(numbers), PIPELINE)]


def random_numbers(seed, count, keys):
    chance = random.Random(seed)
    return [chance.randrange(keys) for _ in range(count)]


def drive(sock, batches, lines):
    """Sends all, two batches in flight so that the server never waits; lines is what the replies to one batch have."""
    due = 0
    start = time.perf_counter()
    for batch in batches:
        while due > lines:
            due -= received(sock)
        sock.sendall(batch)
        due += lines
    while due > 0:
        due -= received(sock)
    return time.perf_counter() - start


def received(sock):
    data = sock.recv(1 << 18)
    if data.startswith(b"-") or not data:
        raise SystemExit(f"the server answered {data[:200]!r}")
    return data.count(b"\n")


def reply_lines(reply):
    """How many lines a reply has on the wire: errors would have raised."""
    if isinstance(reply, list):
        return 1 + sum(map(reply_lines, reply))
    return 2 if isinstance(reply, str) and reply != "OK" else 1


def usec_per_call(server):
    """INFO commandstats since the last CONFIG RESETSTAT, by command in lower case."""
    found = {}
    for field, value in server.info("commandstats").items():
        fields = dict(pair.split("=") for pair in value.split(","))
        if int(fields["calls"]):
            found[field[len("cmdstat_") :].lower()] = int(fields["usec"]) / int(fields["calls"])
    return found


def benchmark_tool():
    return shutil.which("redis-benchmark") or shutil.which("valkey-benchmark")


def requests_per_second(server, words, count, connections=50, keys=1):
    """By redis-benchmark, without pipelining."""
    spread = ["-r", str(keys)] if keys > 1 else []
    command = [benchmark_tool(), "-p", str(server.port), "-c", str(connections), "-n", str(count), *spread, "--csv"]
    done = subprocess.run([*command, *words], capture_output=True, text=True, check=True)
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    return float(rows[-1]["rps"])


def latencies_us(server, calls, lines, per_second, seconds, keys, connections=20):
    """Open loop: each call has its instant, and its latency counts from there, whether or not it could be sent."""
    socks = [server.connect() for _ in range(connections)]
    waiting = {s: collections.deque() for s in socks}
    left = dict.fromkeys(socks, 0)
    chance = random.Random(1)
    total, sent, taken = int(per_second * seconds), 0, []
    begin = time.perf_counter() + 0.01
    while len(taken) < total:
        now = time.perf_counter()
        while sent < total and begin + sent / per_second <= now:
            s = socks[sent % connections]
            s.send(calls.at(chance.randrange(keys)))
            waiting[s].append(begin + sent / per_second)
            sent += 1
        if now > begin + seconds + 30:
            raise SystemExit("the server does not keep up with the fixed load")
        for s in select.select(socks, [], [], 0)[0]:
            got = left[s] + s.recv(65536).count(b"\n")
            now = time.perf_counter()
            while got >= lines:
                got -= lines
                taken.append((now - waiting[s].popleft()) * 1e6)
            left[s] = got
    for s in socks:
        s.close()
    return sorted(taken)
