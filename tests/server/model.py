"""What a token bucket must answer, in exact fractions: the laws of the design in other words than the C code.

The one rounding is that of a change of parameters: what is used is then rounded up to a multiple of 1/period_us.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, floor
from typing import Optional

TEN_YEARS_US = 3653 * 86_400_000_000
USED_MAX = 10**15
UNIT_MS = {"w": 604_800_000, "d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1000, "ms": 1}


class Beyond(Exception):
    """What would be used is more than a bucket may hold."""


@dataclass(frozen=True)
class Limit:
    count: int
    period_us: int
    burst: int

    @property
    def per_us(self):
        return Fraction(self.count, self.period_us)

    def holds(self, used):
        return used <= USED_MAX and used / self.per_us <= TEN_YEARS_US

    def wait_ms(self, units):
        return ceil(units / self.per_us / 1000)

    def rule(self):
        period_ms = self.period_us // 1000
        unit, ms = next((unit, ms) for unit, ms in UNIT_MS.items() if period_ms % ms == 0)
        many = "" if period_ms == ms else period_ms // ms
        return f"{self.count}/{many}{unit}" + ("" if self.burst == self.count else f" BURST {self.burst}")


@dataclass(frozen=True)
class Ask:
    cost: int = 1
    mode: str = "TAKE"  # or FORCE, UPTO, REFUND
    peek: bool = False
    keep_ms: int = 0


@dataclass(frozen=True)
class Totals:
    """Of the calls with KEEP."""

    granted: int
    last_ms: int
    keep_ms: int

    def after(self, units, keep_ms, now_ms):
        if keep_ms and units > 0:
            return Totals(self.granted + units, now_ms, keep_ms)
        last_ms = min(self.last_ms, now_ms)
        if keep_ms and units < 0:
            return Totals(max(self.granted + units, 0), last_ms, keep_ms)
        return replace(self, last_ms=last_ms)

    def kept_at(self, now_ms):
        return self.last_ms + self.keep_ms > now_ms


@dataclass(frozen=True)
class State:
    limit: Limit
    used: Fraction
    at_us: int
    totals: Optional[Totals] = None

    @property
    def ends_at_us(self):
        return ceil(self.at_us + self.used / self.limit.per_us)

    def outlived_at(self, now_us):
        return self.ends_at_us <= now_us

    def kept_at(self, now_us):
        return self.totals is not None and self.totals.kept_at(now_us // 1000)

    def used_at(self, now_us, limit):
        """As if this limit had been set at the last write."""
        used = Fraction(ceil(self.used * limit.period_us), limit.period_us)
        if limit != self.limit and not limit.holds(used):
            raise Beyond
        return max(Fraction(0), used - max(0, now_us - self.at_us) * limit.per_us)


class TokenBucket:
    """One key: None, or its state as of the last write."""

    def __init__(self):
        self.state = None

    def alive(self, now_us):
        """What has outlived itself is absent, but for totals that are kept."""
        if self.state is None or not self.state.outlived_at(now_us):
            return self.state
        return replace(self.state, used=Fraction(0)) if self.state.kept_at(now_us) else None

    def call(self, limit, ask, now_us):
        """The five integers."""
        state = self.alive(now_us)
        used = state.used_at(now_us, limit) if state else Fraction(0)
        units, wait_ms = decide(used, limit, ask)
        moved = -units if ask.mode == "REFUND" else units
        if moved > 0 and ask.mode == "FORCE" and not limit.holds(used + moved):
            raise Beyond
        if ask.peek:
            moved = 0
        elif moved:
            self._write(limit, used + moved, now_us, count(state, moved, ask.keep_ms, now_us))
        elif state and state.at_us > now_us:  # the clock was stepped back: repaired, under its own limit
            self._write(state.limit, state.used, now_us, count(state, 0, 0, now_us))
        left = used + moved
        return [units, limit.burst, floor(limit.burst - left), wait_ms, limit.wait_ms(left)]

    def _write(self, limit, used, now_us, totals):
        state = State(limit, used, now_us, totals)
        self.state = None if used == 0 and not state.kept_at(now_us) else state

    def describe(self, now_us, cost=1):
        """RL.STATE."""
        state = self.alive(now_us)
        if state is None:
            return None
        limit, used = state.limit, state.used_at(now_us, state.limit)
        remaining = floor(limit.burst - used)
        answer = {
            "kind": "tokenbucket",
            "rule": limit.rule(),
            "limit": limit.burst,
            "remaining": remaining,
            "used": limit.burst - remaining,
            "wait_ms": decide(used, limit, Ask(cost))[1],
            "reset_ms": limit.wait_ms(used),
        }
        if state.totals:
            answer.update(granted=state.totals.granted, last_ms=state.totals.last_ms)
        return answer


def decide(used, limit, ask):
    """Units granted or given back, and the wait."""
    if ask.mode == "REFUND":
        return min(ask.cost, floor(used)), 0
    if ask.mode == "FORCE":
        return ask.cost, 0
    room = max(0, floor(limit.burst - used))
    if ask.mode == "UPTO":
        granted, wanted = min(ask.cost, room), 1
    else:
        granted, wanted = ask.cost if ask.cost <= room else 0, ask.cost
    if granted:
        return granted, 0
    return 0, -1 if wanted > limit.burst else limit.wait_ms(used + wanted - limit.burst)


def count(state, units, keep_ms, now_us):
    """The totals after a call: begun by the first grant with KEEP."""
    now_ms = now_us // 1000
    if state and state.totals:
        return state.totals.after(units, keep_ms, now_ms)
    return Totals(units, now_ms, keep_ms) if keep_ms and units > 0 else None
