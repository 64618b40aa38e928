# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""A result as a file: what was measured, on what, and what the goals made of it."""

import json
from statistics import median

VERSION = 1


def build(facts, settings, figures, measured, failed, rows):
    """figures: by name, all that were wanted; measured: name -> values of the rounds; failed: name -> reasons."""
    return {
        "version": VERSION,
        "machine": facts,
        "settings": settings,
        "figures": {name: {"unit": figure.unit, "own": figure.own, "values": [significant(v) for v in measured.get(name, [])],
                           **({"failed": failed[name]} if name in failed else {})} for name, figure in figures.items()},
        "rows": [{"title": row.title, "figure": row.figure.name, "beside": [figure.name for figure in row.others()],
                  "goals": [goal.judge(row.figure, measured) for goal in row.goals]} for row in rows],
    }


def significant(value):
    return float(f"{value:.5g}")


def save(result, path):
    with open(path, "w", encoding="utf-8") as handle:
        json.dump(result, handle, indent=1, sort_keys=False)
        handle.write("\n")


def load(path):
    with open(path, encoding="utf-8") as handle:
        result = json.load(handle)
    if result.get("version") != VERSION:
        raise ValueError(f"{path}: version {result.get('version')}, not {VERSION}")
    return result


def span(values):
    """The median with the least and the greatest, as text."""
    return f"{number(median(values))} ({number(min(values))} .. {number(max(values))})"


def number(value):
    """Three digits, or whole numbers."""
    if value == 0 or abs(value) >= 100:
        return f"{value:.0f}"
    return f"{value:.3g}"
