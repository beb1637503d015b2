"""docs/benchmarks.md, from its template beside this file and the results of a run."""

import datetime
import json
import os
import string
from pathlib import Path

import plots
from cost import MANY_KEYS, ONE_KEY
from goals import BUCKET, Goals

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "benchmarks.md"
TEMPLATE = Path(__file__).with_name("benchmarks.template.md")
RECORD = Path(__file__).with_name("instructions.json")

COST_HEAD = ["", "µs", "of SET PX", "of INCR", "middle above best", "per second, pipelined", "per second, not"]
GROWTH = [
    ("keys", "With the number of keys, µs", "keys"),
    ("logs", "With the entries of a sliding log, µs, and bytes per entry", "entries"),
    ("leases", "With the leases of a key, µs", "leases"),
    ("rules", "With the rules of a policy, µs", "rules"),
    ("connections", "With connections: requests per second, not pipelined", "connections"),
]
WEIGHTS = """## Bytes per key

What `used_memory` grew by for {keys:,} keys of 17 bytes with a TTL, divided by them: the server's tables are included,
as full as with 1,000,000 keys.
"""


def table(head, rows):
    rule = "|" + "---|" * len(head)
    return "\n".join(["| " + " | ".join(head) + " |", rule, *("| " + " | ".join(map(str, r)) + " |" for r in rows)])


def thousands(value):
    return f"{value:,.0f}"


def machine():
    """The facts of the machine; no names of it."""
    model, memory = "unknown processor", ""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), model)
        memory = f", {int(Path('/proc/meminfo').read_text().split()[1]) / 2**20:.0f} GiB of memory"
    except OSError:
        pass
    uname = os.uname()
    return f"{model}, {os.cpu_count()} processors{memory}, {uname.sysname} {uname.machine}"


def about(results):
    load = " ".join(f"{n:.1f}" for n in os.getloadavg())
    rows = [
        ["machine", machine()],
        ["server", results["server"]],
        ["module", results["module"]],
        ["date", datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d")],
        ["run", f"`make bench{results['args']}`, {results['seconds']:.0f} s; load of the machine at its end: {load}"],
    ]
    return table(["", ""], rows)


def spread_title(results, spread):
    return f"{results['many']:,} keys" if spread == MANY_KEYS else spread


def cost_rows(results, spread):
    """Rows for COST_HEAD."""
    found = results["cost"]
    set_px, incr = (found[name, spread]["usec"].value for name in ("SET PX, plain", "INCR, plain"))
    rows = []
    for (label, where), cell in found.items():
        if where != spread:
            continue
        usec = cell["usec"].value
        single = thousands(cell["rps1"].value) if cell["rps1"].values else ""
        ratios = [f"{usec / set_px:.2f}", f"{usec / incr:.2f}", f"{cell['usec'].spread * 100:.0f} %"]
        rows.append([label, f"{usec:.2f}", *ratios, thousands(cell["rps"].value), single])
    return rows


def growth(results, drawn):
    parts = []
    for name, title, first in GROWTH:
        found = results.get(name)
        if not found:
            continue
        digits = 0 if name == "connections" else 2
        columns = list(dict.fromkeys(column for row in found.values() for column in row))
        rows = [[f"{n:,}", *(f"{row[c]:,.{digits}f}" if c in row else "" for c in columns)] for n, row in found.items()]
        parts += [f"### {title}", table([first, *columns], rows)]
        if name in drawn:
            parts.append(f"![{title}](benchmarks/{name}.svg)")
    parts += ["### Persistence and replicas", setups(results["setups"])]
    return "\n\n".join(parts)


def setups(found):
    rows = []
    for name, row in found.items():
        a, b = row["SET PX"], row["RL.TOKENBUCKET"]
        usec = [f"{a['usec']:.2f}", f"{b['usec']:.2f}", f"{b['usec'] / a['usec']:.2f}"]
        rows.append([name, *usec, thousands(a["rps"]), thousands(b["rps"]), f"{b['rps'] / a['rps']:.2f}"])
    names = ["SET PX, µs", "RL.TOKENBUCKET, µs", "ratio", "SET PX, per second", "RL.TOKENBUCKET, per second", "ratio"]
    return table(["", *names], rows)


def weights(results):
    found = results.get("weights")
    if not found:
        return ""
    plain = found["a string with a TTL"]
    rows = [[name, f"{bytes_:.0f}", f"{bytes_ / plain:.2f}"] for name, bytes_ in found.items()]
    return WEIGHTS.format(keys=results["weights_keys"]) + "\n" + table(["", "bytes", "of the string"], rows)


def instructions():
    """What the template says of them, as recorded: they don't depend on how busy the machine is."""
    record = json.loads(RECORD.read_text())
    paths, parts = record["paths"], []
    for path, pieces in record["parts"].items():
        rows = [(cost, f"`{name}`") for name, cost in pieces if cost >= 40 and not name.startswith("0x")]
        parts.append(f"{path}:\n\n" + table(["instructions", "part"], rows))
    granted, refused = paths[BUCKET], paths["RL.TOKENBUCKET, refused"]
    replicate = dict(map(tuple, record["parts"][BUCKET]))["RM_Replicate"]
    lua_fixed = paths["Lua fixed, granted"]["command"]
    numbers = {
        "granted": granted["command"],
        "own": granted["own"],
        "api": granted["command"] - granted["own"],
        "set_px": paths["SET PX, plain"]["command"],
        "replicate": replicate,
        "without": granted["command"] - replicate,
        "refused": refused["command"],
        "refused_own": refused["own"],
        "refused_api": refused["command"] - refused["own"],
        "incr": paths["INCR, plain"]["command"],
        "lua_fixed": lua_fixed,
        "lua_sixth": lua_fixed / 6,
    }
    rows = [[name, *map(thousands, (row["command"], row["own"], row["total"]))] for name, row in paths.items()]
    context = record["context"]
    return {
        **{name: thousands(value) for name, value in numbers.items()},
        "instructions_by": f"Counted by callgrind on {context['server']}, the module compiled by {context['compiler']}",
        "instructions": table(["", "in the command", "of that our code", "in all"], rows),
        "parts": "\n\n".join(parts),
    }


def nodes(results):
    rows = []
    cell = results["cost"][BUCKET, MANY_KEYS]
    for name, best in (("pipelined", cell["rps"]), ("not pipelined", cell["rps1"])):
        if best.values:
            per_node = best.value * 0.6
            need = [-(-wanted // int(per_node)) for wanted in (10**6, 10**7)]
            rows.append([name, thousands(best.value), thousands(per_node), *need])
    return table(["calls are", "one node here", "at 60 %", "nodes for 1,000,000/s", "for 10,000,000/s"], rows)


def write(results):
    """Answers the goals."""
    goals = Goals(results).rows
    drawn = plots.write(results)
    met = [(goal, bound, value, "yes" if ok else "**no**", note) for goal, bound, value, ok, note in goals]
    latency = [[name, *map(thousands, values)] for name, values in results["latency"].items()]
    page = string.Template(TEMPLATE.read_text()).substitute(
        instructions(),
        about=about(results),
        goals=table(["goal", "bound", "measured", "met", ""], met),
        all_keys=thousands(results["all_keys"]),
        many=thousands(results["many"]),
        cost_many=table(COST_HEAD, cost_rows(results, MANY_KEYS)),
        cost_one=table(COST_HEAD, cost_rows(results, ONE_KEY)),
        latency_load=thousands(results["latency_load"]),
        latency=table(["", "p50", "p99", "p99.9"], latency),
        growth=growth(results, drawn),
        weights=weights(results),
        nodes=nodes(results),
    )
    PAGE.write_text(page.replace("\n\n\n", "\n\n"))
    return goals
