# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Draws lines over message size, both axes logarithmic, as SVG that reads well on light and on dark ground."""

import math

WIDTH, HEIGHT = 860, 460
LEFT, RIGHT, TOP, BOTTOM = 64, 140, 44, 48
# Colours that are told apart by people with any colour vision; the library's lines are thick, its peers' thin and dashed.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#e69f00", "#7a7a7a", "#a6761d", "#cc79a7")
# The grey is for programs that know of no colour scheme.
STYLE = """
text{font:12px system-ui,sans-serif;fill:#6e7781}
.title{font-size:15px;font-weight:600}
.grid{stroke:#8c959f;stroke-opacity:.35;stroke-width:1}
.line{fill:none;stroke-linejoin:round}
@media(prefers-color-scheme:light){text{fill:#24292f}}
@media(prefers-color-scheme:dark){text{fill:#e6edf3}}
"""


def size_text(size):
    for power, unit in ((20, "MiB"), (10, "KiB")):
        if size >= 1 << power:
            return f"{size >> power} {unit}"
    return f"{size} B"


class Axes:
    def __init__(self, lines):
        sizes = [size for points in lines.values() for size in points]
        values = [value for points in lines.values() for value in points.values()]
        self.sizes = (math.log2(min(sizes)), max(math.log2(max(sizes)), math.log2(min(sizes)) + 1))
        self.values = (math.floor(math.log10(min(values))), max(math.ceil(math.log10(max(values))), math.floor(math.log10(min(values))) + 1))

    def x(self, size):
        low, high = self.sizes
        return LEFT + (math.log2(size) - low) / (high - low) * (WIDTH - LEFT - RIGHT)

    def y(self, value):
        low, high = self.values
        return HEIGHT - BOTTOM - (math.log10(value) - low) / (high - low) * (HEIGHT - TOP - BOTTOM)

    def draw(self, unit):
        for power in range(self.values[0], self.values[1] + 1):
            y = self.y(10 ** power)
            yield f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
            yield f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{10.0 ** power:g}</text>'
        for power in range(math.ceil(self.sizes[0]), int(self.sizes[1]) + 1):
            if (power - 1) % 2 == 0:
                x = self.x(1 << power)
                yield f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>'
                yield f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{size_text(1 << power)}</text>'
        yield f'<text x="{LEFT - 8}" y="{TOP - 12}" text-anchor="end">{unit}</text>'


def labels(ends):
    """{name: y} near the wanted y, none above another."""
    placed, last = {}, -1e9
    for name, y in sorted(ends.items(), key=lambda item: item[1]):
        last = max(y, last + 15)
        placed[name] = last
    return placed


def draw(title, unit, lines, own):
    """lines: {name: {size: value}}; own: the names of the library's lines."""
    lines = {name: points for name, points in lines.items() if points}
    if not lines:
        return None
    axes = Axes(lines)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{title}">',
           "<!-- SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only -->", f"<style>{STYLE}</style>",
           f'<text class="title" x="{LEFT}" y="20">{title}</text>', *axes.draw(unit)]
    ends = {name: axes.y(points[max(points)]) + 4 for name, points in lines.items()}
    for (name, points), colour in zip(lines.items(), COLOURS):
        path = " ".join(f"{axes.x(size):.1f},{axes.y(points[size]):.1f}" for size in sorted(points))
        width = 'stroke-width="2.6"' if name in own else 'stroke-width="1.6" stroke-dasharray="5 4"'
        out.append(f'<polyline class="line" stroke="{colour}" {width} points="{path}"/>')
    for name, y in labels(ends).items():
        colour = COLOURS[list(lines).index(name)]
        out.append(f'<text x="{WIDTH - RIGHT + 10}" y="{y:.1f}" style="fill:{colour};font-weight:600">{name}</text>')
    return "\n".join([*out, "</svg>", ""])
