"""docs/examples/backpressure.py with real processes: whoever dies, no job is lost and the limit holds."""

import importlib.util
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import redis
from harness import START_US, Server, pairs, until

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "backpressure.py"
spec = importlib.util.spec_from_file_location("backpressure", EXAMPLE)
backpressure = importlib.util.module_from_spec(spec)
spec.loader.exec_module(backpressure)
LEASE_MS = backpressure.LEASE_MS


@pytest.fixture
def jobs(server):
    """On a frozen clock, for what needs no processes."""
    return backpressure.Jobs(server.client, limit=5, lease_ms=3000)


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    """A server that goes by the real clock, and its workers: starting one takes longer than most tests."""
    server, workers = Server(tmp_path_factory.mktemp("backpressure")).start(), []
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REDIS_URL", f"redis://127.0.0.1:{server.port}")
        yield backpressure.Jobs(server.client), workers
    backpressure.stop(workers)
    server.stop()


@pytest.fixture
def real(running):
    return running[0]


@pytest.fixture
def workers(running):
    """Four that live and have nothing to do; those that a test before has killed are replaced."""
    jobs, workers = running
    dead = [process for process in workers if process.poll() is not None]
    backpressure.stop(dead)
    workers[:] = [process for process in workers if process not in dead]
    workers += backpressure.start_workers(4 - len(workers))
    until(lambda: jobs.r.info("clients")["blocked_clients"] == 4, "the workers to wait for jobs")
    jobs.r.flushall()
    return workers


def names(ids):
    return sorted(id.rpartition("#")[0] for id in ids)


def server_ms(client):
    seconds, microseconds = client.time()
    return seconds * 1000 + microseconds // 1000


def latest_start(jobs):
    starts = [line.split() for line in jobs.r.lrange(jobs.trace, 0, -1) if line.endswith("start")]
    return starts and starts[-1]


def schedule(jobs, count, each_round, seconds=30):
    """Runs the scheduler until so many jobs are done; answers the leases that ended."""
    ended, deadline = [], time.monotonic() + seconds
    while jobs.r.llen(jobs.done) < count:
        assert time.monotonic() < deadline, jobs.r.lrange(jobs.trace, 0, -1)
        ended += jobs.put_back()
        jobs.start()
        state = jobs.state()
        assert state is None or state["used"] <= jobs.limit
        each_round(state)
        time.sleep(0.01)
    return ended


def check_all_done(jobs, added):
    assert names(jobs.r.lrange(jobs.done, 0, -1)) == sorted(added), "each of them, and once"
    assert (jobs.r.llen(jobs.waiting), jobs.r.scard(jobs.in_flight), jobs.state()) == (0, 0, None)


def lines_of(jobs, id):
    return [line for line in jobs.r.lrange(jobs.trace, 0, -1) if line.split()[0] == id]


def kill_in_the_middle(jobs, workers):
    """SIGKILL to a worker that is surely in the middle of a job: it stands still while that is looked at. Answers its
    lease and when that ends; None where it was too late."""
    id, pid, _ = latest_start(jobs)
    victim = next(process for process in workers if process.pid == int(pid))
    victim.send_signal(signal.SIGSTOP)
    jobs.r.ping()  # what it had sent has arrived
    jobs.r.ping()
    leases = {id: end_ms for id, _, end_ms in (jobs.state() or {"leases": []})["leases"]}
    if id not in leases or len(lines_of(jobs, id)) > 10:
        victim.send_signal(signal.SIGCONT)
        return None
    victim.kill()
    victim.wait()
    return id, leases[id]


def test_a_killed_worker_loses_no_job_and_the_limit_holds(real, workers):
    added = [f"job-{n}" for n in range(15)]
    real.add(*added)
    killed, freed = [], []

    def kill_once(state):
        if not killed and real.r.llen(real.done) >= 3:
            killed.extend(kill_in_the_middle(real, workers) or [])
            assert not killed or killed[1] <= server_ms(real.r) + LEASE_MS
        elif killed and not freed and (state is None or killed[0] not in [id for id, _, _ in state["leases"]]):
            freed.append(server_ms(real.r))
            assert freed[0] >= killed[1], "the unit comes back when the lease ends, not before"

    ended = schedule(real, len(added), kill_once)
    assert [process.poll() for process in workers].count(-signal.SIGKILL) == 1
    assert freed and killed[0] in ended
    check_all_done(real, added)
    assert killed[0] not in real.r.lrange(real.done, 0, -1), "another attempt did its job"
    assert 1 < backpressure.most_at_once(real.r.lrange(real.trace, 0, -1)) <= real.limit


def test_all_workers_may_die(real, workers):
    """Others take over, with all that was in flight."""
    added = [f"job-{n}" for n in range(4)]
    real.add(*added)
    real.start()
    until(lambda: len({line.split()[0] for line in real.r.lrange(real.trace, 0, -1)}) == 3, "three jobs to be started")
    for process in workers[1:]:
        process.kill()
    workers[0].kill()
    for process in workers:
        process.wait()
    left = len(added) - real.r.llen(real.done)
    workers[:2] = backpressure.start_workers(2)
    schedule(real, len(added), lambda state: None)
    check_all_done(real, added)
    assert left == 0 or any(not id.endswith("#1") for id in real.r.lrange(real.done, 0, -1))


def test_a_worker_that_was_paused_for_longer_than_its_lease_has_lost_its_job(real, workers):
    added = [f"job-{n}" for n in range(4)]
    real.add(*added)
    paused = {}

    def pause(state):
        if not paused and latest_start(real):
            paused["id"], pid, _ = latest_start(real)
            paused["pid"] = int(pid)
            os.kill(paused["pid"], signal.SIGSTOP)

    ended = schedule(real, len(added), pause)
    assert paused["id"] in ended
    os.kill(paused["pid"], signal.SIGCONT)
    real.add("one more")
    schedule(real, len(added) + 1, lambda state: None)
    check_all_done(real, [*added, "one more"])
    assert paused["id"] not in real.r.lrange(real.done, 0, -1)


def test_the_example_tells_what_happened(real):
    environ = {**os.environ, "REDIS_URL": os.environ["REDIS_URL"] + "/1"}  # with workers of its own
    command = [sys.executable, str(EXAMPLE), "--kill"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environ)
    assert (ran.returncode, ran.stderr) == (0, "")
    killed = re.search(r"^the worker that had (\S+) was killed$", ran.stdout, flags=re.MULTILINE)[1]
    done = redis.Redis.from_url(environ["REDIS_URL"], decode_responses=True).lrange(real.done, 0, -1)
    if killed not in done:  # on a busy machine it may have been faster
        assert f"the lease {killed} has ended, so its job waits again\n" in ran.stdout
    assert "12 jobs, each of them done once: yes\n" in ran.stdout
    assert re.search(r"^in flight at once: [123] of 3$", ran.stdout, flags=re.MULTILINE)
    assert ran.stdout.endswith("in flight now: 0, healthy\n")


# ---- without processes


def test_a_scheduler_starts_what_fits(jobs):
    jobs.add(*"abcdefg")
    assert jobs.start() == (5, 0)
    assert jobs.r.lrange(jobs.ready, 0, -1) == [f"{name}#1" for name in "abcde"]
    assert jobs.r.lrange(jobs.waiting, 0, -1) == ["f#1", "g#1"]
    assert jobs.start() == (0, 3000)
    jobs.r.execute_command("RL.RELEASE", jobs.leases, "b#1")
    assert jobs.start() == (1, 0)
    assert jobs.r.scard(jobs.in_flight) == 6


def test_a_scheduler_that_dies_half_way_loses_and_counts_nothing_twice(jobs):
    jobs.add(*"abc")
    ids = jobs.r.lrange(jobs.waiting, 0, -1)
    jobs.r.execute_command("RL.ACQUIRE", jobs.leases, 5, "3s", "IDS", 3, *ids, "UPTO")
    jobs.r.eval(backpressure.START, 3, jobs.waiting, jobs.in_flight, jobs.ready, ids[0])
    assert jobs.start() == (2, 0), "the next one asks for the same leases"
    assert jobs.r.lrange(jobs.ready, 0, -1) == ids
    assert jobs.state()["used"] == 3


def test_two_schedulers_start_no_job_twice(jobs):
    jobs.limit = 200
    jobs.add(*(f"job-{n}" for n in range(200)))
    threads = [threading.Thread(target=jobs.start) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ready = jobs.r.lrange(jobs.ready, 0, -1)
    assert len(ready) == len(set(ready)) == jobs.state()["used"] == 200


def test_asking_who_is_alive_changes_no_end(server, jobs):
    jobs.add(*"abc")
    jobs.start()
    server.clock.advance(ms=2999)
    before = jobs.state()
    assert jobs.put_back() == []
    assert jobs.state() == before
    jobs.r.execute_command("RL.RENEW", jobs.leases, "3s", "b#1")
    server.clock.advance(ms=1)
    assert jobs.put_back() == ["a#1", "c#1"]
    assert jobs.r.lrange(jobs.waiting, 0, -1) == ["c#2", "a#2"]
    assert jobs.put_back() == []


def test_a_worker_without_its_lease_does_nothing(server, jobs):
    jobs.add("a")
    jobs.start()
    server.clock.advance(ms=3000)  # it took too long to get a worker
    assert jobs.run_one(lambda id, held: pytest.fail("nobody may work on it")) is False
    assert jobs.run_one(lambda id, held: True, timeout_s=0.01) is None
    assert jobs.put_back() == ["a#1"]
    jobs.start()
    assert jobs.run_one(lambda id, held: held()) is True
    assert jobs.r.lrange(jobs.done, 0, -1) == ["a#2"]


def test_what_is_finished_too_late_does_not_count(server, jobs):
    jobs.add("a")
    jobs.start()

    def slow(id, held):
        server.clock.advance(ms=3000)
        return True

    assert jobs.run_one(slow) is False
    assert jobs.put_back() == ["a#1"] and jobs.r.llen(jobs.done) == 0


def test_a_full_memory_stops_no_job_that_is_in_flight(server, jobs):
    jobs.add(*"ab")
    jobs.start()
    server.run("CONFIG", "SET", "maxmemory", "1")
    try:
        assert [jobs.run_one(lambda id, held: held()) for _ in "ab"] == [True, True]
        assert (jobs.r.lrange(jobs.done, 0, -1), jobs.state()) == (["a#1", "b#1"], None)
        jobs.put_back()
    finally:
        server.run("CONFIG", "SET", "maxmemory", "0")


def test_a_renewal_that_answers_0_stops_the_work(server, jobs):
    jobs.lease_ms = 60
    jobs.add("a")
    jobs.start()

    def work(id, held):
        assert held()
        server.clock.advance(ms=60)
        until(lambda: not held(), "the worker to notice")
        return held()

    assert jobs.run_one(work) is False


def test_a_lease_that_cannot_be_renewed_is_held_until_its_end_and_no_longer(jobs, monkeypatch):
    jobs.lease_ms = 400
    jobs.add("a")
    jobs.start()
    with backpressure.Lease(jobs, "a#1") as lease:
        held_until = lease.until
        assert lease.held()

        def unreachable(*_):
            raise redis.ConnectionError

        monkeypatch.setattr(jobs.r, "execute_command", unreachable)
        until(lambda: not lease.held(), "the worker to give up")
        assert time.monotonic() >= lease.until >= held_until and not lease.lost


def test_health_is_read_off_the_state(server, jobs):
    assert jobs.health() == "healthy", "idle"
    jobs.add(*"abcd")
    jobs.limit = 10
    jobs.start()
    assert jobs.health() == "healthy"
    jobs.r.execute_command("RL.RENEW", jobs.leases, "9s", "a#1", "b#1", "c#1")
    server.clock.advance(ms=2000)
    assert jobs.health() == "healthy", "a renewal is due"
    server.clock.advance(ms=1)
    assert jobs.health() == "degraded", "two were missed"
    server.clock.advance(ms=999)
    assert jobs.health() == "healthy", "it has ended"
    jobs.put_back()
    jobs.add(*"efghi")
    jobs.start()
    assert (jobs.state()["used"], jobs.health()) == (9, "degraded")
    jobs.add(*"jk")
    jobs.start()
    assert (jobs.state()["remaining"], jobs.health()) == (0, "overloaded")
    assert jobs.start() == (0, 3000)


@pytest.mark.parametrize("protocol", [2, 3])
def test_both_protocols(server, protocol):
    jobs = backpressure.Jobs(server.connect(protocol=protocol, decode_responses=True), limit=2)
    jobs.add("a", "b", "c")
    assert jobs.start() == (2, 0)
    assert jobs.state()["leases"][0] == ["a#1", 1, START_US // 1000 + LEASE_MS]
    assert jobs.health() == "overloaded"
    assert jobs.run_one(lambda id, held: held()) is True
    assert pairs(server.run("RL.STATE", jobs.leases))["leases_count"] == 1
