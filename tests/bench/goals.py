"""The goals, and whether a run met them."""

from cost import MANY_KEYS

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

    def ratio(self, a, b):
        a, b = self.usec(a), self.usec(b)
        return a / b if a and b else None

    def cost(self):
        self.at_most("granted RL.TOKENBUCKET, of SET PX", self.ratio(BUCKET, "SET PX, plain"), 1, FLOOR)
        self.at_most("refused RL.TOKENBUCKET, of INCR", self.ratio("RL.TOKENBUCKET, refused", "INCR, plain"), 2, FLOOR)
        others = [name for name in LUA_OF if name not in ("RL.TOKENBUCKET", "CL.THROTTLE")]
        for name in others:
            self.at_most(f"granted {name}, of RL.TOKENBUCKET", self.ratio(f"{name}, granted", BUCKET), 1.3)
        self.at_most("RL.TAKE with one rule, of the plain command", self.ratio("RL.TAKE, 1 rule, granted", BUCKET), 1.1)
        self.at_most("RL.TAKE with three rules, of the plain", self.ratio("RL.TAKE, 3 rules, granted", BUCKET), 2)
        for name, lua in LUA_OF.items():
            times = self.ratio(f"{lua}, granted", f"{name}, granted")
            if times:
                self.rows.append((f"{name}, times cheaper than {lua}", "≥ 6", f"{times:.1f}", times >= 6, ""))
        cell = self.ratio("redis-cell CL.THROTTLE, granted", "CL.THROTTLE, granted")
        if cell:
            self.rows.append(("CL.THROTTLE, times cheaper than redis-cell", "≥ 2", f"{cell:.1f}", cell >= 2, ""))

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
