"""Draws docs/guides/choosing.svg: what each kind of limiter admits of one and the same bursty load.

usage: plot_admitted.py >docs/guides/choosing.svg

Every call is sent to a real server, whose clock is moved from arrival to arrival. A refused call is not repeated. The
standard library is enough; see own_server.py.
"""

from own_server import Server

MINUTE = 60_000_000  # in µs
HOUR_US = 1_700_002_800_000_000  # 2023-11-14 23:00 UTC
START_US = HOUR_US - 10 * MINUTE
MINUTES, WINDOW = 20, 5
BINS = MINUTES * 4  # of 15 s

# What is offered: so many calls a minute, evenly, from minute to minute.
LOAD = [(0, 2, 10), (2, 4, 120), (4, 9, 10), (9, 11, 120), (11, 15, 10), (15, 16, 120), (16, 20, 10)]

LIMITERS = [
    (["RL.TOKENBUCKET", "20/m BURST 100"], "a burst at once, then what comes back"),
    (["RL.LEAKY", "20/m BURST 100"], "admits the same, and paces it"),
    (["RL.FIXED", "100/5m ALIGN"], "almost twice the limit around a boundary"),
    (["RL.SLIDING", "100/5m"], "never above the limit in any window"),
    (["RL.SLIDING", "100/5m SLOTS 8"], "the same, units held up to a slot longer"),
    (["RL.QUOTA", "200/hour"], "a budget, gone until the hour is over"),
]


def arrivals():
    return [
        START_US + since * MINUTE + (i * MINUTE) // rate
        for since, until, rate in LOAD
        for i in range((until - since) * rate)
    ]


def measure(server, command, rule):
    """When calls were admitted, and when they leave if they are held as told."""
    calls = arrivals()
    server.run("FLUSHALL")
    sent = [step for at in calls for step in (("RL.DEBUG", "CLOCK", at), (command, "key", *rule.split()))]
    replies = server.run_all(sent)[1::2]
    return [(at, at + wait_ms * 1000) for at, (allowed, _, _, wait_ms, _) in zip(calls, replies) if allowed]


def histogram(instants):
    bins = [0] * BINS
    for at in instants:
        index = (at - START_US) * BINS // (MINUTES * MINUTE)
        if index < BINS:
            bins[index] += 1
    return bins


def most_in_any_window(instants):
    best = first = 0
    for last, at in enumerate(instants):
        while instants[first] <= at - WINDOW * MINUTE:
            first += 1
        best = max(best, last - first + 1)
    return best


# ---- the drawing

WIDTH, LEFT, RIGHT, TOP = 870, 58, 26, 64
PANEL, TITLE, GAP = 74, 20, 18
PLOT = WIDTH - LEFT - RIGHT
PEAK = 32  # calls in 15 s at the top of a panel
# In the middle between light and dark: to be read on both.
TEXT, GRID, OFFERED, ADMITTED, LEAVES = "#7d8794", "#8b949e", "#8b949e", "#3987e5", "#e07b26"


def x_of(minute):
    return LEFT + PLOT * minute / MINUTES


def bars(bins, bottom, colour, opacity):
    step = PLOT / BINS
    parts = []
    for i, count in enumerate(bins):
        if count:
            height = PANEL * count / PEAK
            parts.append(f"M{LEFT + i * step:.1f} {bottom}v{-height:.1f}h{step - 1:.1f}v{height:.1f}z")
    return f'<path d="{"".join(parts)}" fill="{colour}" fill-opacity="{opacity}"/>'


def steps(bins, bottom, colour):
    """An outline: the same bins without their bars."""
    step = PLOT / BINS
    path = f"M{LEFT} {bottom}" + "".join(
        f"L{LEFT + i * step:.1f} {bottom - PANEL * count / PEAK:.1f}h{step:.1f}" for i, count in enumerate(bins)
    )
    return f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="1.6" stroke-linejoin="round"/>'


def text(x, y, words, extra=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" {extra}>{words}</text>'


def legend():
    entries = [
        ("offered", f'<rect width="14" height="10" y="-9" fill="{OFFERED}" fill-opacity="0.35"/>'),
        ("admitted", f'<rect width="14" height="10" y="-9" fill="{ADMITTED}"/>'),
        ("leaves, if held as told", f'<path d="M0 -4h14" stroke="{LEAVES}" stroke-width="2"/>'),
    ]
    x, parts = LEFT, []
    for words, mark in entries:
        parts.append(f'<g transform="translate({x} 48)">{mark}</g>' + text(x + 20, 48, words))
        x += 34 + 7 * len(words)
    return "".join(parts)


def panel(top, title, note, offered, admitted, leaves):
    bottom = top + TITLE + PANEL
    parts = [text(LEFT, top + 12, title, 'font-weight="600"')]
    parts.append(text(WIDTH - RIGHT, top + 12, note, 'text-anchor="end"'))
    for count in (0, PEAK // 2, PEAK):
        y = bottom - PANEL * count / PEAK
        opacity = 0.7 if count == 0 else 0.25
        parts.append(f'<path d="M{LEFT} {y:.1f}h{PLOT}" stroke="{GRID}" stroke-opacity="{opacity}"/>')
        parts.append(text(LEFT - 6, y + 4, count, 'text-anchor="end"'))
    parts += [bars(offered, bottom, OFFERED, 0.35), bars(admitted, bottom, ADMITTED, 1)]
    if leaves:
        parts.append(steps(leaves, bottom, LEAVES))
    return "".join(parts)


def draw(rows):
    height = TOP + len(rows) * (TITLE + PANEL + GAP) + 34
    bottom = height - 34 - GAP
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        f'font-family="system-ui, -apple-system, Segoe UI, Helvetica, Arial, sans-serif" font-size="12" fill="{TEXT}">',
        "<title>What each kind of limiter admits of the same bursty load</title>",
        text(LEFT, 24, "What each kind admits of the same bursty load", 'font-size="16" font-weight="600"'),
        legend(),
    ]
    for minute in range(0, MINUTES + 1, WINDOW):
        x = x_of(minute)
        parts.append(
            f'<path d="M{x:.1f} {TOP + TITLE}V{bottom}" stroke="{GRID}" stroke-opacity="0.45" stroke-dasharray="3 4"/>'
        )
        hours, minutes = divmod(22 * 60 + 50 + minute, 60)
        parts.append(text(x, bottom + 17, f"{hours}:{minutes:02}", 'text-anchor="middle"'))
    parts += [panel(TOP + i * (TITLE + PANEL + GAP), *row) for i, row in enumerate(rows)]
    parts.append(text(LEFT + PLOT / 2, bottom + 36, "time, UTC", 'text-anchor="middle"'))
    middle = (TOP + bottom) / 2
    parts.append(
        text(0, 0, "calls in 15 seconds", f'text-anchor="middle" transform="translate(16 {middle}) rotate(-90)"')
    )
    return "\n".join([*parts, "</svg>"])


def main():
    offered = histogram(arrivals())
    rows = []
    with Server() as server:
        for (command, rule), remark in LIMITERS:
            calls = measure(server, command, rule)
            admitted, left = [list(instants) for instants in zip(*calls)]
            paced = histogram(left) if left != admitted else None
            most = most_in_any_window(admitted)
            note = f"{remark} · {len(admitted)} admitted, at most {most} in any {WINDOW} min"
            rows.append((f"{command} {rule}", note, offered, histogram(admitted), paced))
    print(draw(rows))


if __name__ == "__main__":
    main()
