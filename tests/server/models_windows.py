"""What windows, budgets and paced buckets must answer, worked out slowly: the laws of the design in other words than
the C code. Nothing is packed, indexed or cached but the calendar, which is zoneinfo's.

A model is one key. Its uses are what is used and when, as of the last write; it lives in whole milliseconds.
"""

from collections import namedtuple
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta, timezone
from functools import lru_cache
from typing import Optional
from zoneinfo import ZoneInfo

from model import UNIT_MS, USED_MAX, Beyond, TokenBucket, Totals, count

NOTHING = None


def rate_text(units, period_ms):
    unit, ms = next((unit, ms) for unit, ms in UNIT_MS.items() if period_ms % ms == 0)
    return f"{units}/{'' if period_ms == ms else period_ms // ms}{unit}"


def grant(used, limit_count, ask):
    """Units granted or given back, and for how many a refused caller waits."""
    room = max(0, limit_count - used)
    if ask.mode == "REFUND":
        return min(ask.cost, used), 0
    if ask.mode == "FORCE":
        return ask.cost, 0
    if ask.mode == "UPTO":
        return min(ask.cost, room), 1
    return (ask.cost, 0) if ask.cost <= room else (0, ask.cost)


@dataclass(frozen=True)
class Held:
    """What a key holds after a write."""

    limit: object
    uses: object
    totals: Optional[Totals]


class Limiter:
    """One key. A kind says how units are remembered:

    used(limit, uses, now_ms)              units in use
    leaves_ms(limit, uses, now_ms, nth)    when the nth oldest of them is gone
    ends_ms(limit, uses)                   when nothing is in use any more
    ahead(limit, uses, now_ms)             whether the clock was stepped back behind them
    moved(limit, uses, now_ms)             what is left of them, none of it ahead of the clock
    under(old, new, uses)                  as if the new limit had been set at the last write
    written(limit, uses, now_ms, units)    after units more, or less
    """

    def __init__(self):
        self.held = None

    def alive(self, now_ms):
        """What has outlived itself is absent, but for totals that are kept."""
        held = self.held
        if held is None or (held.uses is not NOTHING and self.ends_ms(held.limit, held.uses) > now_ms):
            return held
        return replace(held, uses=NOTHING) if held.totals and held.totals.kept_at(now_ms) else None

    def now_under(self, limit, held, now_ms):
        """First a step back of the clock is repaired, then the parameters change; and that puts nothing ahead."""
        if held is None or held.uses is NOTHING:
            return NOTHING, False
        ahead = self.ahead(held.limit, held.uses, now_ms)
        uses = self.moved(held.limit, held.uses, now_ms) if ahead else held.uses
        uses = self.under(held.limit, limit, uses)
        return self.moved(limit, uses, now_ms) if self.ahead(limit, uses, now_ms) else uses, ahead

    def call(self, limit, ask, now_us):
        """The five integers."""
        now_ms = now_us // 1000
        held = self.alive(now_ms)
        uses, ahead = self.now_under(limit, held, now_ms)
        used = self.used(limit, uses, now_ms)
        units, wanted = grant(used, limit.count, ask)
        change = 0 if ask.peek else -units if ask.mode == "REFUND" else units
        if change > 0 and used + change > USED_MAX:
            raise Beyond
        wait_ms = 0
        if units == 0 and wanted:
            never = wanted > limit.count
            wait_ms = -1 if never else self.leaves_ms(limit, uses, now_ms, used + wanted - limit.count) - now_ms
        if change:
            uses = self.written(limit, uses, now_ms, change)
            self._hold(limit, uses, count(held, change, ask.keep_ms, now_us), now_ms)
        elif ahead and not ask.peek:
            repaired = self.moved(held.limit, held.uses, now_ms)
            self._hold(held.limit, repaired, count(held, 0, 0, now_us), now_ms)
        left = used + change
        reset_ms = self.leaves_ms(limit, uses, now_ms, left) - now_ms if left else 0
        return [units, limit.count, limit.count - left, wait_ms, reset_ms]

    def _hold(self, limit, uses, totals, now_ms):
        self.held = Held(limit, uses, totals)
        self.held = self.alive(now_ms)

    def describe(self, now_us, cost=1):
        """RL.STATE."""
        now_ms = now_us // 1000
        held = self.alive(now_ms)
        if held is None:
            return None
        uses, _ = self.now_under(held.limit, held, now_ms)
        limit, used = held.limit, self.used(held.limit, uses, now_ms)
        excess = used + cost - limit.count
        wait_ms = -1 if cost > limit.count else 0
        if wait_ms == 0 and excess > 0:
            wait_ms = self.leaves_ms(limit, uses, now_ms, excess) - now_ms
        answer = {
            "kind": self.kind,
            "rule": limit.rule(),
            "limit": limit.count,
            "remaining": limit.count - used,
            "used": used,
            "wait_ms": wait_ms,
            "reset_ms": self.leaves_ms(limit, uses, now_ms, used) - now_ms if used else 0,
            **self.details(limit, uses, used, now_ms),
        }
        if held.totals:
            answer.update(granted=held.totals.granted, last_ms=held.totals.last_ms)
        return answer

    def details(self, limit, uses, used, now_ms):
        return {}


# ---- fixed windows


@dataclass(frozen=True)
class FixedLimit:
    count: int
    period_ms: int
    align: bool = False

    def rule(self):
        return rate_text(self.count, self.period_ms) + (" ALIGN" if self.align else "")

    def words(self):
        return [f"{self.count}/{self.period_ms}ms"] + ["ALIGN"] * self.align

    def window(self, at_ms):
        """Where the window begins that is opened by a grant at this time."""
        return at_ms // self.period_ms * self.period_ms if self.align else at_ms


Window = namedtuple("Window", "start_ms used last_ms")


class Fixed(Limiter):
    kind = "fixed"

    def ends_ms(self, limit, window):
        return window.start_ms + limit.period_ms

    def used(self, limit, window, now_ms):
        return window.used if window and self.ends_ms(limit, window) > now_ms else 0

    def leaves_ms(self, limit, window, now_ms, nth):
        return self.ends_ms(limit, window)

    def ahead(self, limit, window, now_ms):
        """An aligned window of the next period is still the current one: else its units would be granted again."""
        return window.start_ms - now_ms > (limit.period_ms if limit.align else 0)

    def moved(self, limit, window, now_ms):
        start_ms = limit.window(now_ms) if self.ahead(limit, window, now_ms) else window.start_ms
        return Window(start_ms, window.used, max(start_ms, now_ms))

    def under(self, old, new, window):
        if old == new:
            return window
        if new.align:
            return window._replace(start_ms=new.window(window.last_ms))
        over = window.start_ms + new.period_ms <= window.last_ms
        return window._replace(start_ms=window.last_ms) if over else window

    def written(self, limit, window, now_ms, units):
        if self.used(limit, window, now_ms) == 0:
            window = Window(limit.window(now_ms), 0, now_ms)
        window = self.moved(limit, window, now_ms)
        used = window.used + units
        return window._replace(used=used) if used else NOTHING


# ---- sliding windows


@dataclass(frozen=True)
class SlidingLimit:
    count: int
    period_ms: int
    slots: int = 0  # 0: EXACT

    @property
    def width_ms(self):
        return -(-self.period_ms // self.slots) if self.slots else 1

    def rule(self):
        return rate_text(self.count, self.period_ms) + (f" SLOTS {self.slots}" if self.slots else "")

    def words(self):
        return [f"{self.count}/{self.period_ms}ms"] + (["SLOTS", self.slots] if self.slots else [])

    def cell(self, at_ms):
        return at_ms // self.width_ms

    def last_ms_of(self, cell):
        return (cell + 1) * self.width_ms - 1

    def gone_ms(self, cell):
        """EXACT: a period after the grant. SLOTS: a period after the end of its slot."""
        return (cell + 1) * self.width_ms + self.period_ms if self.slots else cell + self.period_ms


Log = namedtuple("Log", "units last_ms")  # units: one cell of time for each, in order


def cells(units):
    """Many units in few words: pairs of a cell and how many are in it."""
    merged = []
    for cell, n in units:
        if n and merged and merged[-1][0] == cell:
            merged[-1] = (cell, merged[-1][1] + n)
        elif n:
            merged.append((cell, n))
    return tuple(merged)


class Sliding(Limiter):
    kind = "sliding"

    def left(self, limit, log, now_ms):
        """What has not gone, where what is ahead of the clock counts as of now, and what had gone stays gone."""
        if log is NOTHING:
            return ()
        here, at_ms = limit.cell(now_ms), max(now_ms, log.last_ms)
        return cells((min(cell, here), n) for cell, n in log.units if limit.gone_ms(cell) > at_ms)

    def ends_ms(self, limit, log):
        return max(limit.gone_ms(cell) for cell, _ in log.units)

    def used(self, limit, log, now_ms):
        return sum(n for _, n in self.left(limit, log, now_ms))

    def leaves_ms(self, limit, log, now_ms, nth):
        for cell, n in self.left(limit, log, now_ms):
            nth -= n
            if nth <= 0:
                return limit.gone_ms(cell)
        raise AssertionError("there are not so many units")

    def ahead(self, limit, log, now_ms):
        return log.last_ms > now_ms

    def moved(self, limit, log, now_ms):
        return Log(self.left(limit, log, now_ms), now_ms)

    def under(self, old, new, log):
        if (old.period_ms, old.slots) == (new.period_ms, new.slots):
            return log
        granted = ((min(old.last_ms_of(cell), log.last_ms) if old.slots else cell, n) for cell, n in log.units)
        units = cells((new.cell(at_ms), n) for at_ms, n in granted)
        return Log(tuple((cell, n) for cell, n in units if new.gone_ms(cell) > log.last_ms), log.last_ms)

    def written(self, limit, log, now_ms, units):
        left = list(self.left(limit, log, now_ms))
        if units > 0:
            left.append((limit.cell(now_ms), units))
        while units < 0:
            cell, n = left.pop()
            if n + units > 0:
                left.append((cell, n + units))
            units += n
        return Log(cells(left), now_ms) if left else NOTHING


# ---- the calendar

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
Period = namedtuple("Period", "start_ms end_ms")


@lru_cache(maxsize=None)
def zone_of(text):
    if text == "UTC":
        return timezone.utc
    if text[0] in "+-":
        minutes = int(text[1:3]) * 60 + int(text[4:])
        return timezone(timedelta(minutes=-minutes if text[0] == "-" else minutes))
    return ZoneInfo(text)


def offset_s(zone, at_s):
    return round((EPOCH + timedelta(seconds=at_s)).astimezone(zone).utcoffset().total_seconds())


def shift_in(zone, low_s, high_s):
    """The instant in (low, high] at which the offset changes; there is one."""
    before = offset_s(zone, low_s)
    while high_s - low_s > 1:
        middle = (low_s + high_s) // 2
        low_s, high_s = (middle, high_s) if offset_s(zone, middle) == before else (low_s, middle)
    return high_s


@lru_cache(maxsize=None)
def midnight_s(zone, year, month, day):
    """The first instant at which the clocks show this midnight or later."""
    naive = datetime(year, month, day)
    plain_s = round((naive.replace(tzinfo=timezone.utc) - EPOCH).total_seconds())
    first, second = (round(naive.replace(tzinfo=zone, fold=f).utcoffset().total_seconds()) for f in (0, 1))
    if second > first:  # skipped: the clocks jump over it
        return shift_in(zone, plain_s - second, plain_s - first)
    return plain_s - first


def month_start(zone, year, month, anchor):
    year, month = year + (month - 1) // 12, (month - 1) % 12 + 1
    last = (date(year + month // 12, month % 12 + 1, 1) - timedelta(days=1)).day
    return midnight_s(zone, year, month, min(anchor, last))


def starts(zone, unit, anchor, today):
    """Of the periods around a day of the local calendar, in order."""
    if unit == "month":
        return [month_start(zone, today.year, today.month + n, anchor) for n in (-1, 0, 1, 2)]
    if unit == "year":
        return [midnight_s(zone, today.year + n, 1, 1) for n in (0, 1, 2)]
    days = 7 if unit == "week" else 1
    first = today - timedelta(days=(today.isoweekday() - anchor) % 7 if unit == "week" else 0)
    around = (first + timedelta(days=days * n) for n in (0, 1, 2))
    return [midnight_s(zone, day.year, day.month, day.day) for day in around]


def hour_of(zone, at_s):
    """By the face of the clock: an hour begins where it shows a whole one, jumps to another, or goes back."""
    return hour_start(zone, at_s), hour_end(zone, at_s)


def face(zone, at_s):
    return at_s + offset_s(zone, at_s)


def hour_start(zone, at_s):
    start_s = at_s - face(zone, at_s) % 3600
    if offset_s(zone, start_s) == offset_s(zone, at_s):
        return start_s
    shift_s = shift_in(zone, start_s, at_s)
    before, after = face(zone, shift_s - 1), face(zone, shift_s)
    return shift_s if after < before or after // 3600 != before // 3600 else hour_start(zone, shift_s - 1)


def hour_end(zone, at_s):
    end_s = at_s - face(zone, at_s) % 3600 + 3600
    if offset_s(zone, end_s) == offset_s(zone, at_s):
        return end_s
    shift_s = shift_in(zone, at_s, end_s)
    before, after = face(zone, shift_s - 1), face(zone, shift_s)
    return shift_s if after < before or after // 3600 != before // 3600 else hour_end(zone, shift_s)


@lru_cache(maxsize=1000)
def calendar_period(zone_text, unit, anchor, at_ms):
    zone, at_s = zone_of(zone_text), at_ms // 1000
    if unit == "hour":
        start_s, end_s = hour_of(zone, at_s)
    else:
        today = (EPOCH + timedelta(seconds=at_s)).astimezone(zone).date()
        around = starts(zone, unit, anchor, today)
        start_s = max(start for start in around if start <= at_s)
        end_s = min(start for start in around if start > at_s)
    return Period(start_s * 1000, end_s * 1000)


# ---- quotas


@dataclass(frozen=True)
class QuotaLimit:
    count: int
    unit: str
    zone: str = "UTC"
    anchor: int = 1
    history: int = 0
    alerts: tuple = ()

    def options(self):
        words = [] if self.zone == "UTC" else ["TZ", self.zone]
        words += [] if self.anchor == 1 else ["ANCHOR", self.anchor]
        words += ["HISTORY", self.history] if self.history else []
        return words + (["ALERT", ",".join(map(str, self.alerts))] if self.alerts else [])

    def words(self):
        return [f"{self.count}/{self.unit}", *self.options()]

    def rule(self):
        return " ".join(map(str, self.words()))

    def calendar(self):
        return self.zone, self.unit, self.anchor


@dataclass(frozen=True)
class Budget:
    used: int
    period: Period
    changed: bool = False  # another calendar: what is used moves into its current period
    told: frozenset = frozenset()
    count: int = 0
    past: tuple = field(default=())  # rows: period, used, limit


class Quota(Limiter):
    """A key with history is never forgotten here; when a server does so, with all periods idle, is its own choice."""

    kind = "quota"

    def __init__(self):
        super().__init__()
        self.messages = []

    def period(self, limit, budget, now_ms):
        """The one that is being used, even if the clock was stepped back behind it by up to its length."""
        if budget and not budget.changed and now_ms < budget.period.end_ms and not self.far(budget, now_ms):
            if budget.used or budget.told or budget.period.start_ms <= now_ms:
                return budget.period
        return calendar_period(*limit.calendar(), now_ms)

    def far(self, budget, now_ms):
        start_ms, end_ms = budget.period
        return start_ms - now_ms > end_ms - start_ms

    def ends_ms(self, limit, budget):
        if limit.history and (budget.used or budget.past):
            return 2**60
        return budget.period.end_ms if budget.used or budget.told else 0

    def used(self, limit, budget, now_ms):
        return budget.used if budget and now_ms < budget.period.end_ms else 0

    def leaves_ms(self, limit, budget, now_ms, nth):
        """What was used under another calendar is moved into the current period only by a write."""
        if budget and budget.changed and budget.used:
            return budget.period.end_ms
        return self.period(limit, budget, now_ms).end_ms

    def ahead(self, limit, budget, now_ms):
        return budget.used > 0 and self.far(budget, now_ms)

    def moved(self, limit, budget, now_ms):
        return replace(budget, period=self.period(limit, budget, now_ms))

    def under(self, old, new, budget):
        return replace(budget, changed=budget.changed or old.calendar() != new.calendar())

    def written(self, limit, budget, now_ms, units):
        period = self.period(limit, budget, now_ms)
        budget = budget or Budget(0, period)
        if now_ms >= budget.period.end_ms:
            row = ((budget.period, budget.used, budget.count),) if budget.used else ()
            past = (budget.past + row)[-limit.history :] if limit.history else ()
            budget = Budget(0, period, past=past)
        used = budget.used + units
        reached = {p for p in limit.alerts if used > 0 and used * 100 >= p * limit.count} if units > 0 else set()
        for percent in sorted(reached - budget.told):
            self.messages.append({"percent": percent, "used": used, "limit": limit.count, "end_ms": period.end_ms})
        return replace(budget, used=used, period=period, changed=False, told=budget.told | reached, count=limit.count)

    def details(self, limit, budget, used, now_ms):
        start_ms, end_ms = self.period(limit, budget, now_ms)
        return {
            "period_start_ms": start_ms,
            "period_end_ms": end_ms,
            "percent_used": used * 100 // limit.count if limit.count else 100 if used else 0,
            "over": max(0, used - limit.count),
            "zone": limit.zone,
        }

    def history(self, now_us):
        """RL.HISTORY: from the current period backwards, idle ones as zero, none before the first recorded."""
        now_ms, held = now_us // 1000, self.held
        if held is None or held.uses is NOTHING:
            return []
        limit, budget = held.limit, held.uses
        rows = list(budget.past)
        if budget.used and now_ms >= budget.period.end_ms:
            rows.append((budget.period, budget.used, budget.count))
        listed, start_ms = [], self.period(limit, budget, now_ms).start_ms
        while rows and len(listed) < limit.history:
            period, used, units = rows[-1]
            idle = calendar_period(*limit.calendar(), start_ms - 1)
            if idle.start_ms >= period.end_ms:
                start_ms = idle.start_ms
                listed.append([start_ms, 0, units])
            else:
                start_ms = period.start_ms
                listed.append([start_ms, used, units])
                rows.pop()
        return listed if any(used for _, used, _ in listed) else []


# ---- buckets asked otherwise


class Leaky(TokenBucket):
    """The same bucket: a grant is held until what was used before it has been paid back."""

    def call(self, limit, ask, now_us):
        state = self.alive(now_us)
        used = state.used_at(now_us, limit) if state else 0
        reply = super().call(limit, ask, now_us)
        if reply[0] and ask.mode != "REFUND":
            reply[3] = limit.wait_ms(used)
        return reply


def seconds_up(ns):
    return -(-ns // 10**9)


class Cell:
    """redis-cell: the theoretical arrival time in ns, where an interval between emissions is a whole number of them."""

    def __init__(self, full_at_ns=0):
        self.full_at_ns = full_at_ns

    def call(self, max_burst, units, period_s, quantity, now_ns):
        interval_ns, rest = divmod(period_s * 10**9, units)
        assert rest == 0
        limit = max_burst + 1
        tolerance_ns, increment_ns = interval_ns * limit, interval_ns * quantity
        full_at_ns = max(self.full_at_ns, now_ns)
        allowed_at_ns = full_at_ns + increment_ns - tolerance_ns
        limited, retry_s = now_ns < allowed_at_ns, -1
        if not limited:
            full_at_ns = self.full_at_ns = full_at_ns + increment_ns
        elif increment_ns <= tolerance_ns:
            retry_s = seconds_up(allowed_at_ns - now_ns)
        owed_ns = full_at_ns - now_ns
        remaining = max(0, tolerance_ns - owed_ns) // interval_ns
        return [int(limited), limit, remaining, retry_s, seconds_up(owed_ns)]
