"""What is measured: each command granted and refused, plain commands to compare with, and the Lua forms.

Rates are such that nothing expires during a run and nothing is refused or granted by accident: a bucket that is in use
takes an hour to refill. KEY stands for the key; each variant has keys of its own.
"""

import dataclasses
import zlib

import scripts

HOUR_MS = 3_600_000
ZONE = "America/Sao_Paulo"


@dataclasses.dataclass
class Variant:
    name: str
    verdict: str  # granted, refused, or plain: no limiter
    commands: list  # run in turn as one step
    fill: list = dataclasses.field(default_factory=list)  # what a key needs before
    lua: str = ""  # the name of its Lua form
    fresh: bool = False  # every call is the first one of its key
    many_only: bool = False  # one key can't have so many calls of this sort
    on_cell: bool = False

    @property
    def id(self):
        return f"{self.name}, {self.verdict}"

    @property
    def slug(self):
        """What its keys begin with: as long for all, or those with shorter keys would look faster."""
        return f"{zlib.crc32(self.id.encode()):08x}"

    def grants(self, reply):
        first = reply[0] if isinstance(reply, list) else reply
        return first == 0 if self.commands[0][0] == "CL.THROTTLE" else first != 0


def limiter(name, words, more, lua, refused, refused_first=None):
    """A limiter granted, on keys that `more` has brought into use, and refused, on keys that are used up."""
    return [
        Variant(name, "granted", [words], [words + more], lua),
        Variant(name, "refused", [refused], [refused_first or refused], lua),
    ]


def plain():
    incr, set_px = ["INCR", "KEY"], ["SET", "KEY", "12345", "PX", HOUR_MS]
    return [
        Variant("INCR", "plain", [incr], [incr]),
        Variant("SET PX", "plain", [set_px], [set_px]),
        Variant("SET PX, new key", "plain", [set_px], fresh=True, many_only=True),
    ]


def bucket_words(command):
    return [command, "KEY", "1000/h", "BURST", "1000000"]


def module():
    bucket = bucket_words("RL.TOKENBUCKET")
    thousand = ["COST", "1000"]
    year, zone = ["RL.QUOTA", "KEY", "1000000000/year"], ["TZ", ZONE]
    used_up = ["RL.QUOTA", "KEY", "1/year"]
    held = ["RL.ACQUIRE", "KEY", "1", "1d", "ID", "held"]
    return [
        *limiter("RL.TOKENBUCKET", bucket, thousand, "bucket", ["RL.TOKENBUCKET", "KEY", "1/d"]),
        Variant("RL.TOKENBUCKET, new key", "granted", [bucket], lua="bucket", fresh=True, many_only=True),
        Variant(
            "RL.TOKENBUCKET, expiry moves",
            "granted",
            [["RL.TOKENBUCKET", "KEY", "1/d", "BURST", "3000"]],
            [["RL.TOKENBUCKET", "KEY", "1/d", "BURST", "3000"]],
            "bucket",
            many_only=True,
        ),
        *limiter("RL.LEAKY", bucket_words("RL.LEAKY"), thousand, "bucket", ["RL.LEAKY", "KEY", "1/d"]),
        *limiter(
            "CL.THROTTLE",
            ["CL.THROTTLE", "KEY", "999999", "1000", "3600"],
            ["1000"],
            "bucket",
            ["CL.THROTTLE", "KEY", "0", "1", "86400"],
        ),
        *limiter("RL.FIXED", ["RL.FIXED", "KEY", "1000000000/d"], [], "fixed", ["RL.FIXED", "KEY", "1/d"]),
        *limiter("RL.SLIDING EXACT", ["RL.SLIDING", "KEY", "65000/h"], [], "log", ["RL.SLIDING", "KEY", "1/d"]),
        *limiter(
            "RL.SLIDING SLOTS 8",
            ["RL.SLIDING", "KEY", "1000000000/h", "SLOTS", "8"],
            [],
            "two counters",
            ["RL.SLIDING", "KEY", "1/d", "SLOTS", "8"],
        ),
        *limiter("RL.QUOTA UTC", year, [], "fixed", used_up),
        *limiter("RL.QUOTA with a zone", year + zone, [], "fixed", used_up + zone),
        Variant(
            "RL.ACQUIRE",
            "granted",
            [["RL.ACQUIRE", "KEY", "1000", "1h", "ID", "job"], ["RL.RELEASE", "KEY", "job"]],
            [["RL.ACQUIRE", "KEY", "1000", "1h", "ID", "held"]],
            "leases",
        ),
        Variant("RL.ACQUIRE", "refused", [["RL.ACQUIRE", "KEY", "1", "1d", "ID", "job"]], [held], "leases"),
    ]


RULES = [
    "TOKENBUCKET 1000/h BURST 1000000",
    "FIXED 1000000000/d",
    "QUOTA 1000000000/year",
    "SLIDING 1000000000/h SLOTS 8",
    "LEAKY 1000/m BURST 1000000 AS paced",
    "FIXED 1000000000/h AS hourly",
    "QUOTA 1000000000/month AS monthly",
    "TOKENBUCKET 1000/d BURST 100000 AS slow",
]


def set_policy(server, name, rules):
    server.run("RL.POLICY", "SET", name, *" ".join(rules).split())


def policies(server):
    if not server.knows("RL.TAKE"):
        return []
    set_policy(server, "one", RULES[:1])
    set_policy(server, "three", RULES[:3])
    set_policy(server, "one-used-up", ["TOKENBUCKET 1/d"])
    set_policy(server, "three-used-up", ["TOKENBUCKET 1/d", *RULES[1:3]])
    rows = []
    for rules, policy in (("1 rule", "one"), ("3 rules", "three")):
        words, used_up = ["RL.TAKE", "KEY", policy], ["RL.TAKE", "KEY", f"{policy}-used-up"]
        rows += limiter(f"RL.TAKE, {rules}", words, ["COST", "1000"], "bucket", used_up)
    return rows


def lua(sha):
    def call(name, *args):
        return ["EVALSHA", sha[name], "1", "KEY", *args]

    def two(*args):
        return ["EVALSHA", sha["two counters"], "2", "KEY:now", "KEY:old", *args]

    per_s = 1000 / 3600
    return [
        *limiter_lua("bucket", call("bucket", per_s, 1000000), ["1"], ["1000"], call("bucket", 1 / 86400, 1, 1)),
        *limiter_lua("fixed", call("fixed", 10**9, HOUR_MS), [], [], call("fixed", 1, HOUR_MS)),
        *limiter_lua("log", call("log", 65000, HOUR_MS), [], [], call("log", 1, HOUR_MS)),
        *limiter_lua("two counters", two(10**9, HOUR_MS, 1000, 1), [], [], two(1, HOUR_MS, 1000, 1)),
        Variant(
            "Lua leases",
            "granted",
            [call("leases", 1000, HOUR_MS, "job"), ["ZREM", "KEY", "job"]],
            [call("leases", 1000, HOUR_MS, "held")],
        ),
        Variant("Lua leases", "refused", [call("leases", 1, HOUR_MS, "job")], [call("leases", 1, HOUR_MS, "held")]),
    ]


def limiter_lua(name, words, one, more, refused):
    return [
        Variant(f"Lua {name}", "granted", [words + one], [words + (more or one)]),
        Variant(f"Lua {name}", "refused", [refused], [refused]),
    ]


def cell():
    rows = limiter(
        "redis-cell CL.THROTTLE",
        ["CL.THROTTLE", "KEY", "999999", "1000", "3600"],
        ["1000"],
        "bucket",
        ["CL.THROTTLE", "KEY", "0", "1", "86400"],
    )
    return [dataclasses.replace(row, on_cell=True) for row in rows]


def all_variants(server, cell_server):
    rows = plain() + module() + policies(server) + lua(scripts.load(server)) + (cell() if cell_server else [])
    if not zone_known(server):
        rows = [row for row in rows if "zone" not in row.name]
    return rows


def zone_known(server):
    try:
        server.run("RL.QUOTA", "probe", "1/year", "TZ", ZONE)
    except RuntimeError:
        return False
    server.run("DEL", "probe")
    return True
