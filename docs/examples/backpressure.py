"""Jobs that are never lost, at most so many at once: see docs/guides/backpressure.md. Needs: pip install redis

python backpressure.py          a scheduler and four workers do twelve jobs, three at a time
python backpressure.py --kill   the same, and a worker is killed in the middle of a job
"""

import os
import subprocess
import sys
import threading
import time

import redis

LIMIT, LEASE_MS = 3, 2000  # jobs in flight; a real lease is rather 10 to 60 seconds

# Waiting, so in flight: unless another scheduler was faster.
START = """
if redis.call('LREM', KEYS[1], 1, ARGV[1]) == 1 then
  redis.call('SADD', KEYS[2], ARGV[1])
  redis.call('RPUSH', KEYS[3], ARGV[1])
end
"""

# In flight, so waiting again: unless it was done meanwhile.
AGAIN = """
if redis.call('SREM', KEYS[1], ARGV[1]) == 0 then
  return 0
end
redis.call('LPUSH', KEYS[2], ARGV[2])
return 1
"""

# Done, if the lease is still held: who has lost it has lost the job, too.
DONE = """
if redis.call('RL.RELEASE', KEYS[1], ARGV[1]) == 0 then
  return 0
end
redis.call('SREM', KEYS[2], ARGV[1])
redis.call('RPUSH', KEYS[3], ARGV[1])
return 1
"""


class Jobs:
    """Where a job is: waiting, in flight (and ready until a worker has it), done. The keys share a slot."""

    def __init__(self, r, name="jobs", limit=LIMIT, lease_ms=LEASE_MS):
        self.r, self.limit, self.lease_ms = r, limit, lease_ms
        self.leases = f"{{{name}}}:leases"
        self.waiting, self.ready, self.done = f"{{{name}}}:waiting", f"{{{name}}}:ready", f"{{{name}}}:done"
        self.in_flight, self.trace = f"{{{name}}}:in-flight", f"{{{name}}}:trace"

    def add(self, *jobs):
        self.r.rpush(self.waiting, *(f"{job}#1" for job in jobs))  # "#1": the first attempt has a lease of its own

    # ---- the scheduler

    def start(self):
        """Starts as many of the waiting jobs as there is room for; answers how many, and how long to wait if none."""
        ids = self.r.lrange(self.waiting, 0, min(self.limit, 1024) - 1)
        if not ids:
            return 0, 0
        call = ["RL.ACQUIRE", self.leases, self.limit, f"{self.lease_ms}ms", "IDS", len(ids), *ids, "UPTO"]
        allowed, limit, remaining, wait_ms, reset_ms, granted = self.r.execute_command(*call)
        for id in granted:
            self.r.eval(START, 3, self.waiting, self.in_flight, self.ready, id)
        return len(granted), wait_ms

    def put_back(self):
        """The jobs whose lease has ended wait again, first in the row. Answers which."""
        ids = sorted(self.r.smembers(self.in_flight))
        ended = []
        for n in range(0, len(ids), 1000):
            some = ids[n : n + 1000]
            # A renewal never shortens and never revives: one of a millisecond only asks who is alive.
            alive = self.r.execute_command("RL.RENEW", self.leases, "1ms", *some)
            ended += [id for id, is_alive in zip(some, alive) if not is_alive]
        return [id for id in ended if self._again(id)]  # some have no lease because they were done just now

    def _again(self, id):
        job, _, attempt = id.rpartition("#")
        return self.r.eval(AGAIN, 2, self.in_flight, self.waiting, id, f"{job}#{int(attempt) + 1}") == 1

    def health(self):
        """healthy, degraded or overloaded, off RL.STATE."""
        state = self.state()
        if state is None:
            return "healthy"  # nothing is in flight
        if state["remaining"] <= 0 and self.r.llen(self.waiting) > 0:
            return "overloaded"  # all that may run does, and more wait
        if state["used"] >= 0.8 * state["limit"]:
            return "degraded"  # nearly all
        # One unit more than is free is free when the next lease ends, unless that is renewed.
        later = self.state(cost=state["remaining"] + 1)
        late = later is not None and 0 < later["wait_ms"] < self.lease_ms / 3
        return "degraded" if late else "healthy"  # late: two renewals were missed, its worker is slow or dead

    def state(self, cost=1):
        reply = self.r.execute_command("RL.STATE", self.leases, "COST", cost)
        return dict(zip(reply[::2], reply[1::2])) if isinstance(reply, list) else reply

    # ---- a worker

    def run_one(self, work, timeout_s=1):
        """Takes a job that was started and works on it. True if it is done, None if there was none."""
        taken = self.r.blpop([self.ready], timeout_s)
        if not taken:
            return None
        id = taken[1]
        with Lease(self, id) as lease:
            if not lease.held() or not work(id, lease.held):
                return False  # the scheduler puts the job back, or has done so already
            return self.r.eval(DONE, 3, self.leases, self.in_flight, self.done, id) == 1


class Lease:
    """Renews a lease at every third of its length, and knows when it isn't held any more."""

    def __init__(self, jobs, id):
        self.jobs, self.id = jobs, id
        self.until, self.lost = 0, False
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.keep, daemon=True)

    def held(self):
        """Asks nobody: a server that can't be reached, or a thread that hangs, is as good as a lost lease."""
        return not self.lost and time.monotonic() < self.until

    def renew(self):
        asked = time.monotonic()  # before the server does: our end is never later than its own
        try:
            [alive] = self.jobs.r.execute_command("RL.RENEW", self.jobs.leases, f"{self.jobs.lease_ms}ms", self.id)
        except redis.RedisError:
            return  # there is time to try again, until it is up
        if alive:
            self.until = asked + self.jobs.lease_ms / 1000
        else:
            self.lost = True

    def keep(self):
        while not self.lost and not self.ended.wait(self.jobs.lease_ms / 3000):
            self.renew()

    def __enter__(self):
        self.renew()
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join()


# ---- the demonstration: jobs that take 200 ms in small steps, and leave a trace


def connect():
    url = os.environ.get("REDIS_URL", "redis://127.0.0.1:6379")
    return redis.Redis.from_url(url, decode_responses=True, socket_timeout=5)  # longer than any BLPOP


def worker(jobs):
    def work(id, held):
        jobs.r.rpush(jobs.trace, f"{id} {os.getpid()} start")
        for _ in range(10):
            time.sleep(0.02)
            if not held():
                return False
            jobs.r.rpush(jobs.trace, f"{id} {os.getpid()} step")
        return True

    print("ready", flush=True)
    while True:
        jobs.run_one(work)


def most_at_once(trace):
    """How many jobs were worked on at the same time: each from its first line in the trace to its last."""
    ids = [line.split()[0] for line in trace]
    last = {id: n for n, id in enumerate(ids)}
    running, most = set(), 0
    for n, id in enumerate(ids):
        running.add(id)
        most = max(most, len(running))
        if last[id] == n:
            running.remove(id)
    return most


def start_workers(count):
    command = [sys.executable, __file__, "worker"]
    workers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(count)]
    for process in workers:
        process.stdout.readline()  # it is ready
    return workers


def stop(workers):
    for process in workers:  # at any time: no job is lost
        process.kill()
        process.wait()
        process.stdout.close()


def kill_one(jobs, workers):
    """Kills the worker of the latest job in the trace, with SIGKILL. Answers the id of its lease."""
    starts = [line for line in jobs.r.lrange(jobs.trace, 0, -1) if line.endswith("start")]
    if not starts:
        return None
    id, pid, _ = starts[-1].split()
    victim = next(w for w in workers if w.pid == int(pid))
    victim.kill()
    victim.wait()
    return id


def demonstrate(jobs, count, kill=False):
    names = [f"job-{n}" for n in range(1, count + 1)]
    jobs.r.delete(jobs.leases, jobs.waiting, jobs.ready, jobs.done, jobs.in_flight, jobs.trace)
    jobs.add(*names)
    workers, killed = start_workers(4), None
    try:
        while jobs.r.llen(jobs.done) < count:
            for id in jobs.put_back():
                print(f"the lease {id} has ended, so its job waits again")
            jobs.start()
            if kill and not killed:
                killed = kill_one(jobs, workers)
                if killed:
                    print(f"the worker that had {killed} was killed")
            time.sleep(0.02)
    finally:
        stop(workers)
    done = sorted((id.rpartition("#")[0] for id in jobs.r.lrange(jobs.done, 0, -1)), key=names.index)
    print(f"{count} jobs, each of them done once: {'yes' if done == names else 'no'}")
    print(f"in flight at once: {most_at_once(jobs.r.lrange(jobs.trace, 0, -1))} of {jobs.limit}")
    print(f"in flight now: {jobs.r.scard(jobs.in_flight)}, {jobs.health()}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["worker"]:
        worker(Jobs(connect()))
    else:
        demonstrate(Jobs(connect()), 12, kill="--kill" in sys.argv)
