"""docs/benchmarks.md and its plots, from the results of a run."""

import datetime
import json
import os
from pathlib import Path

import svg
from cost import MANY_KEYS, ONE_KEY
from goals import BUCKET, Goals
from report_text import ESTIMATE, FLOOR, HOW, INTRO

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "benchmarks.md"
PLOTS = ROOT / "docs" / "benchmarks"
RECORD = Path(__file__).with_name("instructions.json")


def table(head, rows):
    rule = "|" + "---|" * len(head)
    return "\n".join(["| " + " | ".join(head) + " |", rule, *("| " + " | ".join(map(str, r)) + " |" for r in rows)])


def machine():
    """The facts of the machine; no names of it."""
    model = "unknown processor"
    memory = ""
    try:
        for line in open("/proc/cpuinfo"):
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
        memory = f", {int(open('/proc/meminfo').readline().split()[1]) / 2**20:.0f} GiB of memory"
    except OSError:
        pass
    uname = os.uname()
    load = " ".join(f"{n:.1f}" for n in os.getloadavg())
    return f"{model}, {os.cpu_count()} processors{memory}, {uname.sysname} {uname.release} {uname.machine}", load


def thousands(value):
    return f"{value:,.0f}"


def spread_title(results, spread):
    return f"{results['many']:,} keys" if spread == MANY_KEYS else spread


def cost_rows(results, spread):
    """name, µs, of SET PX, of INCR, rounds differ by, pipelined, not pipelined"""
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


COST_HEAD = ["", "µs", "of SET PX", "of INCR", "middle above best", "per second, pipelined", "per second, not"]


def growth_table(found, first, digits=2):
    names = list(dict.fromkeys(name for row in found.values() for name in row))
    rows = [[f"{n:,}", *(f"{row[x]:,.{digits}f}" if x in row else "" for x in names)] for n, row in found.items()]
    return table([first, *names], rows)


def instructions():
    if not RECORD.exists():
        return ""
    record = json.loads(RECORD.read_text())
    context = record["context"]
    rows = [[name, row["command"], row["own"] or "", row["total"]] for name, row in record["paths"].items()]
    parts = []
    for path, pieces in record["parts"].items():
        pieces = [(name, cost) for name, cost in pieces if cost >= 40 and not name.startswith("0x")]
        parts.append(f"{path}:\n\n" + table(["instructions", "part"], [(cost, f"`{n}`") for n, cost in pieces]))
    with_what = f"Counted by callgrind on {context['server']}, compiled by {context['compiler']}."
    head = ["per call", "in the command", "of that our code", "in all"]
    numbers = {
        name: record["paths"][name] for name in ("SET PX, plain", BUCKET, "RL.TOKENBUCKET, refused", "INCR, plain")
    }
    granted, set_px = numbers[BUCKET], numbers["SET PX, plain"]
    replicate = dict(map(tuple, record["parts"][BUCKET])).get("RM_Replicate", 0)
    floor = FLOOR.format(
        granted=granted["command"],
        own=granted["own"],
        api=granted["command"] - granted["own"],
        set_px=set_px["command"],
        replicate=replicate,
        without=granted["command"] - replicate,
        refused=numbers["RL.TOKENBUCKET, refused"]["command"],
        refused_own=numbers["RL.TOKENBUCKET, refused"]["own"],
        refused_api=numbers["RL.TOKENBUCKET, refused"]["command"] - numbers["RL.TOKENBUCKET, refused"]["own"],
        incr=numbers["INCR, plain"]["command"],
    )
    return "\n\n".join(["## Instructions per call", with_what, table(head, rows), floor, *parts])


def plots(results):
    """Writes them and answers {name: Markdown}."""
    PLOTS.mkdir(exist_ok=True)
    drawn = {}
    found = [(n, c["usec"].value) for (n, spread), c in results["cost"].items() if spread == MANY_KEYS]
    wanted = [(n, v) for n, v in found if n.endswith((", granted", ", plain")) and "expiry" not in n and "new" not in n]
    rows = [(n.replace(", granted", "").replace(", plain", ""), v) for n, v in wanted]
    coloured = [(n, v, 1 if n.startswith("Lua") else 0 if "." in n else 2) for n, v in sorted(rows, key=lambda r: r[1])]
    drawn["cost"] = svg.bars(f"A granted call, time inside the server, {results['many']:,} keys", coloured, "µs")
    for name, title, axis in (
        ("keys", "Time per call by number of keys", "keys"),
        ("logs", "RL.SLIDING EXACT by entries in its log", "entries"),
        ("leases", "RL.ACQUIRE by leases in its key", "leases"),
    ):
        if results.get(name):
            names = [x for x in next(iter(results[name].values())) if "bytes" not in x]
            series = {x: [(n, row[x]) for n, row in results[name].items() if x in row] for x in names}
            drawn[name] = svg.lines(title, series, axis, "µs per call")
    for name, drawing in drawn.items():
        (PLOTS / f"{name}.svg").write_text(drawing)
    return {name: f"![{name}](benchmarks/{name}.svg)" for name in drawn}


def nodes(results):
    rows = []
    cell = results["cost"][BUCKET, MANY_KEYS]
    ways = [("pipelined", cell["rps"]), ("not pipelined", cell["rps1"])]
    for name, best in ways:
        if best.values:
            per_node = best.value * 0.6
            need = [str(max(1, -(-wanted // int(per_node)))) for wanted in (10**6, 10**7)]
            rows.append([name, thousands(best.value), thousands(per_node), *need])
    return table(["calls are", "one node here", "at 60 % load", "nodes for 1,000,000/s", "for 10,000,000/s"], rows)


def write(results):
    goals = Goals(results).rows
    drawn = plots(results)
    facts, load = machine()
    date = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d")
    met = [
        (g, bound, value, "yes" if ok else "**no**", remark if not ok else "") for g, bound, value, ok, remark in goals
    ]
    about = table(
        ["", ""],
        [
            ["machine", facts],
            ["server", results["server"]],
            ["module", results["module"]],
            ["date", date],
            [
                "run",
                f"`make bench{results['args']}`, {results['seconds']:.0f} s, load of the machine at its end {load}",
            ],
        ],
    )
    parts = [INTRO, about, "## Goals", table(["goal", "bound", "measured", "met", ""], met), HOW]
    for spread in (MANY_KEYS, ONE_KEY):
        parts += [f"## Cost of a call, {spread_title(results, spread)}", table(COST_HEAD, cost_rows(results, spread))]
        parts += [drawn["cost"]] if spread == MANY_KEYS else []
    parts.append(
        "## Latency\n\nIn µs, at a fixed load of " + f"{results['latency_load']:,} calls a second on 20 connections."
    )
    rows = [[name, *map(thousands, values)] for name, values in results["latency"].items()]
    parts.append(table(["", "p50", "p99", "p99.9"], rows))
    parts.append("## How cost grows")
    for name, title, first in SECTIONS:
        if results.get(name):
            parts += [f"### {title}", growth_table(results[name], first, 0 if name == "connections" else 2)]
            parts += [drawn[name]] if name in drawn else []
    if results.get("setups"):
        parts += ["### Persistence and replicas", setups_table(results["setups"])]
    if results.get("weights"):
        plain = results["weights"]["a string with a TTL"]
        rows = [[n, f"{w:.0f}", f"{w / plain:.2f}"] for n, w in results["weights"].items()]
        parts += [WEIGHTS.format(keys=results["weights_keys"]), table(["", "bytes", "of the string"], rows)]
    parts += [instructions(), ESTIMATE, nodes(results)]
    PAGE.write_text("\n\n".join(part.strip() for part in parts if part) + "\n")
    return goals


SECTIONS = [
    ("keys", "With the number of keys, µs", "keys"),
    ("logs", "With the entries of a sliding log, µs, and bytes per entry", "entries"),
    ("leases", "With the leases of a key, µs", "leases"),
    ("rules", "With the rules of a policy, µs", "rules"),
    ("connections", "With connections: requests per second, not pipelined", "connections"),
]
WEIGHTS = """## Bytes per key

What `used_memory` grew by for {keys:,} keys of 17 bytes with a TTL, divided by them: the server's tables are included. The table of keys
is as full as with 1,000,000."""


def setups_table(setups):
    rows = []
    for name, row in setups.items():
        a, b = row["SET PX"], row["RL.TOKENBUCKET"]
        usec = [f"{a['usec']:.2f}", f"{b['usec']:.2f}", f"{b['usec'] / a['usec']:.2f}"]
        rows.append([name, *usec, thousands(a["rps"]), thousands(b["rps"]), f"{b['rps'] / a['rps']:.2f}"])
    head = [
        "",
        "SET PX, µs",
        "RL.TOKENBUCKET, µs",
        "ratio",
        "SET PX, per second",
        "RL.TOKENBUCKET, per second",
        "ratio",
    ]
    return table(head, rows)
