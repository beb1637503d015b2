"""The plots beside docs/benchmarks.md."""

from pathlib import Path

import svg
from cost import MANY_KEYS

FOLDER = Path(__file__).parents[2] / "docs" / "benchmarks"
LINES = [
    ("keys", "Time per call by number of keys", "keys"),
    ("logs", "RL.SLIDING EXACT by entries in its log", "entries"),
    ("leases", "One more lease by leases in its key", "leases"),
]
LIMITER, LUA, PLAIN = range(3)


def cost(results):
    rows = []
    for (label, spread), cell in results["cost"].items():
        name, verdict = label.rsplit(", ", 1)
        if spread == MANY_KEYS and verdict != "refused" and "," not in name.replace(", 1", "").replace(", 3", ""):
            colour = LUA if name.startswith("Lua") else LIMITER if "." in name else PLAIN
            rows.append((name, cell["usec"].value, colour))
    title = f"A granted call, time inside the server, {results['many']:,} keys"
    return svg.bars(title, sorted(rows, key=lambda row: row[1]), "µs")


def write(results):
    """Answers the names of those that were drawn."""
    drawn = {"cost": cost(results)}
    for name, title, axis in LINES:
        columns = [c for c in next(iter(results[name].values())) if "bytes" not in c]
        series = {c: [(n, row[c]) for n, row in results[name].items() if c in row] for c in columns}
        drawn[name] = svg.lines(title, series, axis, "µs per call")
    FOLDER.mkdir(exist_ok=True)
    for name, drawing in drawn.items():
        (FOLDER / f"{name}.svg").write_text(drawing)
    return list(drawn)
