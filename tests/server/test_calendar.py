"""The calendar of RL.QUOTA against Python's zoneinfo, and the safe reading of the tz database.

tests/unit/calendar_check.c answers questions over a pipe; no server is needed. What is right is worked out here from
nothing but zoneinfo's offset at an instant, by another way than the C code's: around each boundary the clock is watched
every quarter of an hour.
"""

import bisect
import os
import random
import struct
import subprocess
import time
import zoneinfo
from datetime import date, datetime, timedelta, timezone
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ["tests/unit/calendar_check.c", "src/server/zones.c", "src/algo/calendar.c", "src/algo/zone.c"]
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
ORDINAL = date(1970, 1, 1).toordinal()
DAY, HOUR = 86400, 3600
UNITS = ("hour", "day", "week", "month", "year")
ZONES = sorted(z for z in zoneinfo.available_timezones() if z != "localtime")


@pytest.fixture(scope="session")
def program(tmp_path_factory):
    """The one that make built, if RL_CALENDAR_CHECK names it; else a fresh one with sanitizers."""
    if os.environ.get("RL_CALENDAR_CHECK"):
        return os.environ["RL_CALENDAR_CHECK"]
    out = str(tmp_path_factory.mktemp("calendar") / "calendar_check")
    flags = ["-std=c11", "-D_GNU_SOURCE", "-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    subprocess.run([os.environ.get("CC", "cc"), *flags, "-Isrc", "-o", out, *SOURCES], cwd=ROOT, check=True)
    return out


def ask(program, lines, directory=None):
    """Answers as tuples of integers, or words where something is wrong."""
    command = [program, str(directory)] if directory else [program]
    text = "".join(line + "\n" for line in lines)
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    answers = done.stdout.splitlines()
    assert len(answers) == len(lines)
    return [tuple(map(int, a.split())) if a[0] in "-0123456789" else a for a in answers]


class Clock:
    """A local clock, known only by the offset that zoneinfo tells for an instant."""

    def __init__(self, zone):
        self.zone = zone
        self.firsts = {}

    def offset(self, at_s):
        delta = (EPOCH + timedelta(seconds=at_s)).astimezone(self.zone).utcoffset()
        return delta.days * DAY + delta.seconds

    def shifts(self, low, high):
        """Instants in (low, high] at which the offset changes."""
        found = []
        step = 15 * 60
        before = self.offset(low)
        for at in range(low + step, high + step, step):
            after = self.offset(at)
            if after != before:
                a, b = at - step, at
                while b - a > 1:
                    middle = (a + b) // 2
                    if self.offset(middle) == before:
                        a = middle
                    else:
                        b = middle
                found.append(b)
                before = after
        return found

    def first_at(self, local_s):
        """The first instant at which the clock shows local_s or later."""
        if local_s not in self.firsts:
            low, high = local_s - 27 * HOUR, local_s + 27 * HOUR
            offset = self.offset(local_s)
            if self.offset(low) == offset == self.offset(high) == self.offset(local_s - offset):
                self.firsts[local_s] = local_s - offset
            else:
                edges = [low, *self.shifts(low, high), high]
                for start, end in zip(edges, edges[1:]):
                    at = max(start, local_s - self.offset(start))
                    if at < end:
                        self.firsts[local_s] = at
                        break
        return self.firsts[local_s]

    def hour(self, at_s):
        low, high = at_s - 2 * HOUR, at_s + 2 * HOUR
        shifts = self.shifts(low, high)
        bounds = set()
        for at in shifts:
            before, after = at - 1 + self.offset(at - 1), at + self.offset(at)
            if after <= before or after // HOUR != before // HOUR:
                bounds.add(at)
        edges = [low, *shifts, high]
        for start, end in zip(edges, edges[1:]):
            bounds.update(range(start + -(start + self.offset(start)) % HOUR, end, HOUR))
        bounds = sorted(bounds)
        i = bisect.bisect_right(bounds, at_s)
        return bounds[i - 1], bounds[i]

    def period(self, unit, anchor, at_s):
        if unit == "hour":
            return self.hour(at_s)
        day = date.fromordinal((at_s + self.offset(at_s)) // DAY + ORDINAL)
        # Candidates around, of which the last that has begun is the one.
        starts = [self.first_at((d.toordinal() - ORDINAL) * DAY) for d in boundaries(unit, anchor, day)]
        i = bisect.bisect_right(starts, at_s)
        return starts[i - 1], starts[i]


def boundaries(unit, anchor, day):
    """Local days on which a period starts: one or more up to day, and some after it."""
    if unit == "day":
        return [day + timedelta(days=n) for n in range(0, 4)]
    if unit == "week":
        back = (day.isoweekday() - anchor) % 7
        return [day + timedelta(days=n - back) for n in (0, 7, 14)]
    if unit == "year":
        return [date(day.year + n, 1, 1) for n in (0, 1, 2)]
    months = []
    for n in range(-1, 3):
        year, month = divmod(day.year * 12 + day.month - 1 + n, 12)
        last = (date(year + (month == 11), (month + 1) % 12 + 1, 1) - timedelta(days=1)).day
        months.append(date(year, month + 1, min(anchor, last)))
    return months


def anchor_for(rng, unit):
    return {"week": rng.randint(1, 7), "month": rng.choice([1, 15, 28, 29, 30, 31, rng.randint(1, 31)])}.get(unit, 1)


def compare(program, questions, clocks, directory=None):
    """questions: (zone name, unit, anchor, ms). Answers how many numbers were compared."""
    answers = ask(program, ["%s %s %d %d" % q for q in questions], directory)
    wrong = []
    for (name, unit, anchor, ms), got in zip(questions, answers):
        at_s = ms // 1000
        start, end = clocks[name].period(unit, anchor, at_s)
        want = (start * 1000, end * 1000, clocks[name].offset(at_s))
        if got != want:
            wrong.append((name, unit, anchor, ms, got, want))
    assert not wrong, (len(wrong), wrong[:5])
    return 3 * len(questions)


def seconds(year):
    return int((datetime(year, 1, 1, tzinfo=timezone.utc) - EPOCH).total_seconds())


def test_all_zones_over_a_century_of_random_instants(program):
    rng = random.Random(7)
    clocks = {name: Clock(zoneinfo.ZoneInfo(name)) for name in ZONES}
    questions = []
    # And some from long before, and from far ahead, where only the footer's rule is left.
    spans = 90 * [(1970, 2071)] + 6 * [(1890, 1970)] + 6 * [(2071, 2255)]
    for name in ZONES:
        for first, last in spans:
            unit = rng.choice(UNITS)
            ms = rng.randrange(seconds(first) * 1000, seconds(last) * 1000)
            questions.append((name, unit, anchor_for(rng, unit), ms))
    assert compare(program, questions, clocks) > 100_000


def test_around_changes_of_the_offset(program):
    rng = random.Random(8)
    clocks = {name: Clock(zoneinfo.ZoneInfo(name)) for name in ZONES}
    questions = []
    for name in ZONES:
        clock = clocks[name]
        for _ in range(30):
            low = rng.randrange(seconds(1930), seconds(2060))
            high = low + rng.randrange(DAY, 400 * DAY)
            if clock.offset(low) == clock.offset(high):
                continue
            while high - low > 1:
                middle = (low + high) // 2
                if clock.offset(middle) == clock.offset(low):
                    low = middle
                else:
                    high = middle
            near = [rng.randrange(-2 * HOUR, 2 * HOUR), rng.randrange(-2 * DAY, 2 * DAY)]
            for at_s in (high, high - 1, high + near[0], high + near[1]):
                unit = rng.choice(UNITS[:4])
                questions.append((name, unit, anchor_for(rng, unit), at_s * 1000 + rng.randrange(1000)))
    assert compare(program, questions, clocks) > 10_000


def tzif(footer, offset_s=0, version=b"3", leap=0):
    """The least of a TZif file: one type, no transitions, and a footer."""

    def block(width):
        header = b"TZif" + version + bytes(15) + struct.pack(">6L", 0, 0, leap, 0, 1, 4)
        return header + struct.pack(">lBB", offset_s, 0, 0) + b"LMT\0" + bytes(leap * (width + 4))

    return block(4) + block(8) + b"\n" + footer.encode() + b"\n"


@pytest.fixture
def libc_offset():
    """The offset that libc makes of a TZ string. (zoneinfo is a day off for rules that count days from zero.)"""
    had = os.environ.get("TZ")

    def offset(footer, at_s):
        if os.environ.get("TZ") != footer:
            os.environ["TZ"] = footer
            time.tzset()
        return time.localtime(at_s).tm_gmtoff

    yield offset
    os.environ.pop("TZ") if had is None else os.environ.update(TZ=had)
    time.tzset()


def test_rules_of_the_footer(program, tmp_path, libc_offset):
    rng = random.Random(9)

    def rule(months):
        """Struck well inside its half of the year: how rules that collide are read differs from library to library."""
        month = rng.choice(months)
        day = (month - 1) * 30 + rng.randint(10, 25)
        form = rng.choice(["M%d.%d.%d" % (month, rng.randint(1, 5), rng.randint(0, 6)), "J%d" % day, "%d" % day])
        clocks = ["", "/%d" % rng.randint(0, 24), "/-%d" % rng.randint(1, 100), "/%d:30" % rng.randint(25, 150)]
        return form + rng.choice(clocks)

    footers, questions = [], []
    (tmp_path / "Rule").mkdir()
    for i in range(300):
        halves = [[2, 3, 4, 5], [8, 9, 10, 11]]
        rng.shuffle(halves)
        west = rng.choice(["5", "-3:30", "+0", "-12:45", "11", "-1:00:07"])
        saving = rng.choice(["", "", "4:30", "-2"])
        footers.append("STD%sDST%s,%s,%s" % (west, saving, rule(halves[0]), rule(halves[1])))
        (tmp_path / "Rule" / ("R%d" % i)).write_bytes(tzif(footers[i]))
        questions += [(i, rng.randrange(seconds(1990), seconds(2100))) for _ in range(40)]
    answers = ask(program, ["Rule/R%d day 1 %d" % (i, at_s * 1000) for i, at_s in questions], tmp_path)
    for (i, at_s), got in zip(questions, answers):
        assert got[2] == libc_offset(footers[i], at_s), (footers[i], at_s)


@pytest.mark.parametrize(
    "footer, at, want",
    [
        ("STD0", 0, 0),
        ("<-03>3", 0, -10800),
        ("<+0530>-5:30", 0, 19800),
        ("XXX3EDT4,0/0,J365/23", 0, -14400),  # daylight saving time all year (RFC 8536)
        ("XXX3EDT4,0/0,J365/23", 1735700400 - 1, -14400),
        ("XXX3EDT4,0/0,J365/23", 1735700400, -14400),
        ("IST-1GMT0,M10.5.0,M3.5.0/1", 1704067200, 0),  # negative saving, in winter
        ("IST-1GMT0,M10.5.0,M3.5.0/1", 1719792000, 3600),
        ("", 0, 7),  # an empty footer says nothing
    ],
)
def test_footers_worth_a_line(program, tmp_path, footer, at, want):
    (tmp_path / "Z1").write_bytes(tzif(footer, offset_s=7))
    assert ask(program, ["Z1 day 1 %d" % (at * 1000)], tmp_path)[0][2] == want


@pytest.mark.parametrize(
    "footer",
    [
        "S0",
        "STD",
        "STD25",
        "STD0DST",
        "STD0DST,",
        "STD0DST,M3.2.0",
        "STD0DST,M3.2.0,",
        "STD0DST,M0.2.0,M11.1.0",
        "STD0DST,M3.6.0,M11.1.0",
        "STD0DST,M3.2.7,M11.1.0",
        "STD0DST,J0,J9",
        "STD0DST,J366,J9",
        "STD0DST,366,9",
        "STD0DST,1/168,9",
        "STD0DST,1/1:60,9",
        "STD0DST,1,9x",
        "<+0>0",
        "<STD0",
        "STD0DST25,1,9",
        "STD:0",
        "STD0 ",
        "STD-",
        "STD0DST,1,9,",
    ],
)
def test_footers_that_are_none(program, tmp_path, footer):
    (tmp_path / "Z1").write_bytes(tzif(footer))
    assert ask(program, ["Z1 day 1 0"], tmp_path) == ["unreadable"]


KNOWN = [  # zone, unit, anchor, an instant in UTC, start and end in UTC
    ("Pacific/Apia", "day", 1, "2011-12-30T12:00", "2011-12-30T10:00", "2011-12-31T10:00"),  # the 30th was skipped
    ("Pacific/Apia", "month", 30, "2011-12-30T12:00", "2011-12-30T10:00", "2012-01-29T10:00"),
    ("America/Sao_Paulo", "day", 1, "2018-11-04T12:00", "2018-11-04T03:00", "2018-11-05T02:00"),  # no midnight, 23 h
    ("America/Sao_Paulo", "day", 1, "2018-02-17T12:00", "2018-02-17T02:00", "2018-02-18T03:00"),  # 25 h
    ("Africa/Cairo", "day", 1, "2024-04-26T12:00", "2024-04-25T22:00", "2024-04-26T21:00"),
    ("America/St_Johns", "day", 1, "2010-11-07T03:00", "2010-11-07T02:30", "2010-11-08T03:30"),  # midnight twice
    ("America/New_York", "hour", 1, "2024-11-03T05:30", "2024-11-03T05:00", "2024-11-03T06:00"),  # one o'clock twice
    ("America/New_York", "hour", 1, "2024-11-03T06:30", "2024-11-03T06:00", "2024-11-03T07:00"),
    ("Australia/Lord_Howe", "hour", 1, "2024-04-06T14:30", "2024-04-06T14:00", "2024-04-06T15:00"),
    ("Australia/Lord_Howe", "hour", 1, "2024-04-06T15:10", "2024-04-06T15:00", "2024-04-06T15:30"),  # again
    (
        "Australia/Lord_Howe",
        "hour",
        1,
        "2024-10-05T15:40",
        "2024-10-05T15:30",
        "2024-10-05T16:00",
    ),  # half an hour skipped
    ("Asia/Kolkata", "hour", 1, "2024-05-01T10:45", "2024-05-01T10:30", "2024-05-01T11:30"),
    ("-03:00", "month", 31, "2024-02-29T02:59", "2024-01-31T03:00", "2024-02-29T03:00"),
    ("-03:00", "month", 31, "2024-02-29T03:00", "2024-02-29T03:00", "2024-03-31T03:00"),
    ("utc", "week", 1, "2024-12-30T00:00", "2024-12-30T00:00", "2025-01-06T00:00"),
    ("z", "week", 7, "2024-12-30T00:00", "2024-12-29T00:00", "2025-01-05T00:00"),
    ("Europe/Berlin", "year", 1, "2199-12-31T22:59", "2198-12-31T23:00", "2199-12-31T23:00"),
]


def test_known_days(program):
    def ms(text):
        return int(datetime.fromisoformat(text + "+00:00").timestamp()) * 1000

    answers = ask(program, ["%s %s %d %d" % (zone, unit, anchor, ms(at)) for zone, unit, anchor, at, _, _ in KNOWN])
    for (zone, unit, _, at, start, end), got in zip(KNOWN, answers):
        assert got[:2] == (ms(start), ms(end)), (zone, unit, at)


@pytest.mark.parametrize(
    "text",
    [
        "/etc/passwd",
        "/usr/share/zoneinfo/UTC",
        "../UTC",
        "..",
        ".",
        "Europe/../UTC",
        "Europe//Berlin",
        "Europe/",
        "Europe/Berlin/",
        "Europe\\Berlin",
        "Europe/Ber.lin",
        "localtime",
        "posixrules",
        "posix/UTC",
        "right/UTC",
        "tzdata.zi",
        ":Europe/Berlin",
        "+3:00",
        "+03",
        "+0300",
        "+03:60",
        "+24:00",
        "03:00",
        "+03:00:00",
        "--3:00",
        "UTC+3",
        "A" * 65,
        "Zürich",
        "-Europe/Berlin",
    ],
)
def test_what_is_not_a_zone(program, text):
    # "UTC+3" has the syntax of a name, as GMT+3 does, but there is no such zone
    assert ask(program, ["%s day 1 0" % text]) == ["unknown" if text == "UTC+3" else "bad-syntax"]


def test_nothing_outside_of_the_database_is_read(program, tmp_path):
    outside = tmp_path / "outside"
    inside = tmp_path / "inside"
    (inside / "Area").mkdir(parents=True)
    (tmp_path / "inside2").mkdir()
    outside.write_bytes(tzif("STD0"))
    (tmp_path / "inside2" / "Sibling").write_bytes(tzif("STD0"))
    (inside / "Good").write_bytes(tzif("STD-1"))
    (inside / "Area" / "Alias").symlink_to("../Good")
    (inside / "Out").symlink_to(outside)
    (inside / "Sibling").symlink_to("../inside2/Sibling")
    (inside / "Away").symlink_to(tmp_path / "inside2")
    (inside / "Loop").symlink_to("Loop")
    (inside / "Dangling").symlink_to("Nowhere")
    (inside / "Device").symlink_to("/dev/zero")
    os.mkfifo(inside / "Pipe")
    (inside / "Large").write_bytes(tzif("STD0") + bytes(256 * 1024))
    (inside / "Empty").write_bytes(b"")
    (inside / "Text").write_text("root:x:0:0")
    (inside / "Cut").write_bytes(tzif("STD0")[:-3])
    (inside / "Leap").write_bytes(tzif("STD0", leap=1))
    want = {
        "UTC": (0, 86400000, 0),
        "Good": (-3600000, 82800000, 3600),
        "Area/Alias": (-3600000, 82800000, 3600),
        **dict.fromkeys(["Area", "Nowhere", "Good/Under", "Dangling"], "unknown"),
        **dict.fromkeys(["Out", "Sibling", "Away/Sibling", "Loop", "Device", "Pipe"], "unreadable"),
        **dict.fromkeys(["Large", "Empty", "Text", "Cut", "Leap"], "unreadable"),
    }
    got = ask(program, ["%s day 1 0" % name for name in want] * 2, inside)
    assert dict(zip(want, got)) == want
    assert got[len(want) :] == got[: len(want)]


def test_a_machine_without_a_database(program, tmp_path):
    lines = ["Europe/Berlin day 1 0", "UTC day 1 0", "+01:00 day 1 0", "no/name day 1 0"]
    want = ["no-database", (0, 86400000, 0), (-3600000, 82800000, 3600), "bad-syntax"]
    assert ask(program, lines, tmp_path / "none") == want


def test_zones_are_cached_and_the_cache_is_bounded(program, tmp_path):
    for i in range(3000):
        (tmp_path / ("Z%d" % i)).write_bytes(tzif("STD-%d" % (i % 24)))
    lines = ["Z%d day 1 0" % i for i in range(3000)]
    answers = ask(program, lines + lines[::-1] + ["forget"] + lines, tmp_path)
    offsets = [i % 24 * 3600 for i in range(3000)]
    got = [a[2] for a in answers if a != "ok"]
    assert got == offsets + offsets[::-1] + offsets
