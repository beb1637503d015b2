"""What calls cost, how that grows, and whether the goals are met: prints it and writes docs/benchmarks.md.

usage: bench.py [--quick | --full]

RATELIMIT_SO and REDIS_SERVER name module and server, CELL a redis-cell to compare with. It starts its own servers.
"""

import contextlib
import sys
import time

import cost
import growth
import report
import setups
import variants
from servers import BenchServer, cell_module

SIZES = {
    "--quick": {
        "many": 10_000,
        "rounds": 5,
        "calls": 2000,
        "single_rounds": 0,
        "singles": 0,
        "growth_rounds": 2,
        "keys": 10_000,
        "logs": [10, 1000, 10_000],
        "leases": [1, 100, 10_000],
        "connections": [],
        "weights": 0,
        "latency_s": 0.5,
        "latency_rounds": 1,
    },
    "": {
        "many": 100_000,
        "rounds": 12,
        "calls": 4000,
        "single_rounds": 2,
        "singles": 5000,
        "growth_rounds": 5,
        "keys": 1_000_000,
        "logs": [10, 100, 1000, 10_000, 65_536],
        "leases": [1, 10, 100, 1000, 10_000, 100_000],
        "connections": [1, 10, 100, 500],
        "weights": 125_000,
        "latency_s": 1,
        "latency_rounds": 3,
    },
    "--full": {
        "many": 100_000,
        "rounds": 40,
        "calls": 8000,
        "single_rounds": 5,
        "singles": 20_000,
        "growth_rounds": 9,
        "keys": 10_000_000,
        "logs": [10, 100, 1000, 10_000, 65_536],
        "leases": [1, 10, 100, 1000, 10_000, 100_000],
        "connections": [1, 10, 100, 1000, 5000],
        "weights": 1_000_000,
        "latency_s": 3,
        "latency_rounds": 5,
    },
}
LATENCY_LOAD = 5000  # calls a second


def main():
    mode = next((word for word in sys.argv[1:] if word in SIZES), "")
    if set(sys.argv[1:]) - {mode}:
        raise SystemExit(__doc__)
    size = SIZES[mode]
    begin = time.monotonic()

    def tell(words):
        if sys.stderr.isatty():
            print(f"\r\x1b[K{time.monotonic() - begin:5.0f} s  {words}", end="", file=sys.stderr, flush=True)

    results = {
        "many": size["many"],
        "latency_load": LATENCY_LOAD,
        "weights_keys": size["weights"],
        "args": f" ARGS={mode}" if mode else "",
    }
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(BenchServer(*growth.OFF))
        cell = cell_module()
        cell = cell and stack.enter_context(BenchServer(*growth.OFF, module=cell))
        results["server"] = server.version()
        results["module"] = module_version(server)
        rows = variants.all_variants(server, cell)
        subjects = [cost.Subject(v, cell if v.on_cell else server, size["many"]) for v in rows]
        results["cost"] = cost.measure(
            subjects, size["rounds"], size["calls"], size["single_rounds"], size["singles"], tell
        )
        results["all_keys"] = server.run("DBSIZE")
        results["latency"] = cost.latency(subjects, LATENCY_LOAD, size["latency_s"], size["latency_rounds"], tell)

    rounds, calls = size["growth_rounds"], 10_000
    results["keys"] = growth.keys(size["keys"], rounds, calls, tell)
    results["logs"] = growth.logs(size["logs"], rounds, calls, tell)
    results["leases"] = growth.leases(size["leases"], rounds, calls, tell)
    results["rules"] = growth.rules(rounds, calls, tell)
    if size["connections"]:
        results["connections"] = growth.connections(size["connections"], 2, calls, tell)
    if size["weights"]:
        results["weights"] = growth.weights(size["weights"], tell)
    results["setups"] = setups.measure(rounds, 5000, tell)
    results["seconds"] = time.monotonic() - begin
    tell("done\n")
    show(results, report.write(results))


def module_version(server):
    modules = [dict(zip(row[::2], row[1::2])) for row in server.run("MODULE", "LIST")]
    version = next(int(row["ver"]) for row in modules if row["name"] == "ratelimit")
    return f"ratelimit {version // 10000}.{version // 100 % 100}.{version % 100}"


def show(results, goals):
    for spread in (cost.MANY_KEYS, cost.ONE_KEY):
        title = report.spread_title(results, spread)
        print(f"\n{title:38} {'µs':>6} {'of SET PX':>9} {'of INCR':>8} {'noise':>6} {'piped/s':>10} {'single/s':>9}")
        for label, usec, of_set, of_incr, noise, piped, single in report.cost_rows(results, spread):
            print(f"{label:38} {usec:>6} {of_set:>9} {of_incr:>8} {noise:>6} {piped:>10} {single:>9}")
    print("\ngoals")
    for goal, bound, value, met, _ in goals:
        print(f"{'met ' if met else 'NOT '} {goal:70} {bound:>6} {value:>8}")
    print(f"\nThe rest is in {report.PAGE.relative_to(report.ROOT)}, with plots beside it.")


if __name__ == "__main__":
    main()
