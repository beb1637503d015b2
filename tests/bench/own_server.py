"""A server of one's own for the scripts beside this one. The standard library is enough.

RATELIMIT_SO and REDIS_SERVER name the module and the server, by default build/ratelimit.so and redis-server.
"""

import os
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path

MODULE = os.path.abspath(os.environ.get("RATELIMIT_SO", Path(__file__).parents[2] / "build" / "ratelimit.so"))
BINARY = os.environ.get("REDIS_SERVER") or shutil.which("redis-server") or "redis-server"


class Server:
    """Started on a free port with the module and its debug clock; ended with the block."""

    def __enter__(self):
        self.folder = tempfile.mkdtemp()
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        quiet = ["--save", "", "--appendonly", "no", "--loglevel", "warning", "--dir", self.folder]
        command = [BINARY, "--port", str(port), "--bind", "127.0.0.1", *quiet, "--loadmodule", MODULE, "debug"]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + 20
        while True:
            try:
                self.socket = socket.create_connection(("127.0.0.1", port))
                break
            except ConnectionRefusedError:
                assert self.process.poll() is None and time.monotonic() < deadline, "the server does not start"
                time.sleep(0.01)
        self.replies = self.socket.makefile("rb")
        return self

    def __exit__(self, *_):
        self.socket.close()
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.folder)

    def run(self, *command):
        return self.run_all([command])[0]

    def run_all(self, commands):
        """Many commands in one round trip."""
        packed = []
        for command in commands:
            words = [str(word).encode() for word in command]
            packed.append(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words))
        answers = []
        for i in range(0, len(packed), 500):
            self.socket.sendall(b"".join(packed[i : i + 500]))
            answers += [self._read() for _ in packed[i : i + 500]]
        return answers

    def _read(self):
        line = self.replies.readline()
        kind, rest = line[:1], line[1:-2].decode()
        if kind == b"-":
            raise RuntimeError(rest)
        if kind == b"+":
            return rest
        if kind == b":":
            return int(rest)
        if kind == b"*":
            return [self._read() for _ in range(int(rest))]
        length = int(rest)
        return None if length < 0 else self.replies.read(length + 2)[:-2].decode()

    def info(self, section):
        lines = self.run("INFO", section).splitlines()
        return dict(line.split(":", 1) for line in lines if ":" in line)
