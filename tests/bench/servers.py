"""Servers for the benchmark: as in own_server.py, with any module, any settings and, if need be, under valgrind."""

import os
import shutil
import socket
import subprocess
import tempfile
import time

from own_server import BINARY, MODULE, Server


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class BenchServer(Server):
    """Started with the block, or by start(), on a free port, quiet but for what the settings ask for."""

    def __init__(self, *settings, module=(MODULE, "debug"), prefix=(), patience_s=20):
        self.settings = [str(word) for word in settings]
        self.module = list(module)
        self.prefix = list(prefix)
        self.patience_s = patience_s

    def __enter__(self):
        if self.module and not os.path.exists(self.module[0]):
            raise SystemExit(f"there is no {self.module[0]}: run make first")
        self.folder = tempfile.mkdtemp(prefix="bench-")
        self.port = free_port()
        quiet = ["--save", "", "--loglevel", "warning", "--dir", self.folder, "--bind", "127.0.0.1"]
        module = ["--loadmodule", *self.module] if self.module else []
        command = [
            *self.prefix,
            os.path.abspath(shutil.which(BINARY) or BINARY),
            "--port",
            str(self.port),
            *quiet,
            *self.settings,
            *module,
        ]
        self.process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL if self.prefix else None, cwd=self.folder
        )
        deadline = time.monotonic() + self.patience_s
        while True:
            try:
                self.socket = self.connect()
                break
            except OSError:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    raise SystemExit(f"the server does not start: {' '.join(command)}") from None
                time.sleep(0.02)
        self.replies = self.socket.makefile("rb")
        return self

    def __exit__(self, *_):
        self.socket.close()
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def connect(self):
        s = socket.create_connection(("127.0.0.1", self.port), timeout=60)
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return s

    def knows(self, command):
        return self.run("COMMAND", "INFO", command)[0] is not None

    def used_memory(self):
        return int(self.info("memory")["used_memory"])

    def settled_memory(self):
        """used_memory once the server has moved its growing tables."""
        seen = [-1, self.used_memory()]
        while seen[-1] != seen[-2] or len(seen) < 4:
            time.sleep(0.25)
            seen.append(self.used_memory())
        return seen[-1]

    def version(self):
        info = self.info("server")
        name = "Valkey" if "valkey_version" in info else "Redis"
        return f"{name} {info.get('valkey_version') or info['redis_version']}"


def cell_module():
    """redis-cell, where CELL=path/to/libredis_cell.so names it."""
    path = os.environ.get("CELL")
    if path and not os.path.exists(path):
        raise SystemExit(f"CELL={path}: there is no such file")
    return [os.path.abspath(path)] if path else None
