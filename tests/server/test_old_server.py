"""A server that is too old is told so. It has to be there: `make build/servers/redis-6.0/redis-server` fetches it."""

import os
import re
import subprocess
from pathlib import Path

import pytest
from harness import MODULE, PRELOAD, free_port

OLD = Path(__file__).parents[2] / "build" / "servers" / "redis-6.0"
LIBC = r"lib(c|m|pthread|dl|rt|resolv|nss_\w+|util|anl|nsl|thread_db|mvec)|ld(-linux-x86-64)?"
OF_LIBC = re.compile(rf"({LIBC})(-2\.\d+)?\.so")


def test_redis_6_refuses_to_load_the_module_and_says_why(tmp_path):
    if not OLD.exists() or PRELOAD:
        pytest.skip("no Redis 6.0 here, or a module that needs a sanitizer's library")
    # Its own libc is older than the one that the module was built with: it runs with this machine's.
    for library in OLD.rglob("*-linux-gnu/*.so*"):
        link = tmp_path / library.name
        if not OF_LIBC.match(library.name) and not link.exists():
            link.symlink_to(library)
    binary = tmp_path / "redis-server"
    binary.symlink_to(next(OLD.rglob("redis-check-rdb")))
    ended = subprocess.run(
        [binary, "--port", str(free_port()), "--loadmodule", MODULE],
        cwd=tmp_path,
        env={**os.environ, "LD_LIBRARY_PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=20,
    )
    assert ended.returncode == 1
    assert "ratelimit needs Redis 7.0 or newer, or Valkey 8.0 or newer: not loaded" in ended.stdout
