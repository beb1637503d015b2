"""Plots as SVG, by the standard library alone. Colours are in the middle between light and dark, to be read on both."""

import math

WIDTH, LEFT, RIGHT = 870, 62, 26
TEXT, GRID = "#7d8794", "#8b949e"
COLOURS = ["#3987e5", "#e07b26", "#3fa34d", "#b05cc8"]


def text(x, y, words, extra=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" {extra}>{words}</text>'


def page(height, title, parts):
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        f'font-family="system-ui, -apple-system, Segoe UI, Helvetica, Arial, sans-serif" font-size="12" fill="{TEXT}">'
    )
    heading = text(LEFT, 24, title, 'font-size="16" font-weight="600"')
    return "\n".join([head, f"<title>{title}</title>", heading, *parts, "</svg>"]) + "\n"


def bars(title, rows, unit):
    """Horizontal bars: rows of (name, value, index of a colour)."""
    left, top, step = 270, 44, 20
    longest = max(value for _, value, _ in rows)
    scale = (WIDTH - left - 70) / longest
    parts = []
    for i, (name, value, colour) in enumerate(rows):
        y = top + i * step
        parts.append(text(left - 8, y + 12, name, 'text-anchor="end"'))
        parts.append(f'<rect x="{left}" y="{y + 2}" width="{value * scale:.1f}" height="13" fill="{COLOURS[colour]}"/>')
        parts.append(text(left + value * scale + 6, y + 12, f"{value:.2f} {unit}"))
    return page(top + len(rows) * step + 16, title, parts)


def number(n):
    for size, letter in ((10**6, "M"), (10**3, "k")):
        if n >= size:
            return f"{n / size:g}{letter}"
    return f"{n:g}"


def lines(title, series, x_label, y_label):
    """Lines over a logarithmic x axis: {name: [(x, y)]}."""
    top, height, below = 66, 250, 60
    points = [point for line in series.values() for point in line]
    low, high = math.log10(min(x for x, _ in points)), math.log10(max(x for x, _ in points))
    peak = max(y for _, y in points) * 1.08
    plot = WIDTH - LEFT - RIGHT

    def at(x, y):
        return LEFT + plot * (math.log10(x) - low) / ((high - low) or 1), top + height * (1 - y / peak)

    parts, x = [], LEFT
    for i, name in enumerate(series):
        parts.append(f'<path d="M{x} 46h16" stroke="{COLOURS[i]}" stroke-width="3"/>' + text(x + 22, 50, name))
        x += 44 + 7 * len(name)
    tick = 10 ** math.floor(math.log10(peak))
    tick = next(t for t in (tick / 5, tick / 2, tick, tick * 2) if peak / t <= 7)
    for i in range(int(peak / tick) + 1):
        y = at(points[0][0], i * tick)[1]
        parts.append(f'<path d="M{LEFT} {y:.1f}h{plot}" stroke="{GRID}" stroke-opacity="{0.25 if i else 0.7}"/>')
        parts.append(text(LEFT - 6, y + 4, number(i * tick), 'text-anchor="end"'))
    for x in sorted({x for x, _ in points}):
        parts.append(text(at(x, 0)[0], top + height + 17, number(x), 'text-anchor="middle"'))
    for i, line in enumerate(series.values()):
        path = "L".join("{:.1f} {:.1f}".format(*at(*point)) for point in line)
        parts.append(f'<path d="M{path}" fill="none" stroke="{COLOURS[i]}" stroke-width="2"/>')
        parts += ['<circle cx="{:.1f}" cy="{:.1f}" r="3" fill="{}"/>'.format(*at(*p), COLOURS[i]) for p in line]
    parts.append(text(LEFT + plot / 2, top + height + 38, x_label, 'text-anchor="middle"'))
    middle = top + height / 2
    parts.append(text(0, 0, y_label, f'text-anchor="middle" transform="translate(16 {middle}) rotate(-90)"'))
    return page(top + height + below, title, parts)
