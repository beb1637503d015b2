"""The goals, and whether a run met them."""

from cost import MANY_KEYS, ONE_KEY

BUCKET = "RL.TOKENBUCKET, granted"
LUA_OF = {
    "RL.TOKENBUCKET": "Lua bucket",
    "RL.LEAKY": "Lua bucket",
    "CL.THROTTLE": "Lua bucket",
    "RL.FIXED": "Lua fixed",
    "RL.SLIDING EXACT": "Lua log",
    "RL.SLIDING SLOTS 8": "Lua two counters",
    "RL.QUOTA UTC": "Lua fixed",
    "RL.QUOTA with a zone": "Lua fixed",
    "RL.ACQUIRE": "Lua leases",
}
FLOOR = "see [the floor](#where-the-instructions-go)"


def remark(alone, floor):
    """What it is on one key, and where the floor is told."""
    return "; ".join(filter(None, [alone and f"on one key {alone:.2f}", floor]))


class Goals:
    """Rows of (goal, bound, measured, whether met, remark)."""

    def __init__(self, results):
        self.results, self.rows = results, []
        self.cost()
        self.memory()
        self.growth()

    def usec(self, label, spread=MANY_KEYS):
        cell = self.results["cost"].get((label, spread))
        return cell["usec"].value if cell else None

    def at_most(self, goal, value, bound, remark="", digits=2):
        if value is not None:
            self.rows.append((goal, f"≤ {bound:g}", f"{value:.{digits}f}", value <= bound, remark))

    def ratio(self, a, b, spread=MANY_KEYS):
        a, b = self.usec(a, spread), self.usec(b, spread)
        return a / b if a and b else None

    def compare(self, goal, a, b, bound, floor=""):
        """a's cost as a part of b's on many keys, which is what the goal is about; told for one key too."""
        value, alone = self.ratio(a, b), self.ratio(a, b, ONE_KEY)
        self.at_most(goal, value, bound, remark(alone, value and value > bound and floor))

    def cheaper(self, goal, a, b, times, floor=""):
        value, alone = self.ratio(b, a), self.ratio(b, a, ONE_KEY)
        if value:
            met = value >= times
            self.rows.append((goal, f"≥ {times}", f"{value:.1f}", met, remark(alone, not met and floor)))

    def cost(self):
        self.compare("granted RL.TOKENBUCKET, of SET PX", BUCKET, "SET PX, plain", 1, FLOOR)
        self.compare("refused RL.TOKENBUCKET, of INCR", "RL.TOKENBUCKET, refused", "INCR, plain", 2, FLOOR)
        for name in LUA_OF:
            if name not in ("RL.TOKENBUCKET", "CL.THROTTLE", "RL.ACQUIRE"):
                self.compare(f"granted {name}, of RL.TOKENBUCKET", f"{name}, granted", BUCKET, 1.3)
        self.compare("RL.TAKE with one rule, of the plain command", "RL.TAKE, 1 rule, granted", BUCKET, 1.1)
        self.compare("RL.TAKE with three rules, of the plain", "RL.TAKE, 3 rules, granted", BUCKET, 2)
        for name, lua in LUA_OF.items():
            floor = FLOOR if lua == "Lua fixed" else ""
            self.cheaper(f"{name}, times cheaper than {lua}", f"{name}, granted", f"{lua}, granted", 6, floor)
        cell = "redis-cell CL.THROTTLE, granted"
        self.cheaper("CL.THROTTLE, times cheaper than redis-cell", "CL.THROTTLE, granted", cell, 2)

    def memory(self):
        weights, logs = self.results.get("weights"), self.results.get("logs")
        if weights:
            bucket = weights["RL.TOKENBUCKET, RL.LEAKY, CL.THROTTLE"]
            self.at_most("bytes of a bucket, of the Lua hash", bucket / weights["Lua bucket"], 1)
            self.at_most("bytes of a bucket, of a string with a TTL", bucket / weights["a string with a TTL"], 1.4)
        if logs:
            longest = max(logs)
            self.at_most(f"bytes per logged grant, {longest:,} of them", logs[longest]["bytes"], 5, digits=1)

    def growth(self):
        keys, logs = self.results.get("keys"), self.results.get("logs")
        if keys:
            most = max(keys)
            grown = {name: keys[most][name] / keys[min(keys)][name] for name in ("RL.TOKENBUCKET", "SET PX")}
            self.at_most(
                f"RL.TOKENBUCKET from {min(keys):,} to {most:,} keys, of what SET PX grows by",
                grown["RL.TOKENBUCKET"] / grown["SET PX"],
                1.1,
                "flat but for what memory itself costs any command",
            )
        if logs:
            shortest, longest = min(logs), max(logs)
            grown = logs[longest]["granted"] / logs[shortest]["granted"]
            self.at_most(f"RL.SLIDING from {shortest} to {longest:,} entries", grown, 1.5, "flat, within noise")
