# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""A result as a file: what was measured, on what, and what the goals made of it."""

import json
from statistics import median

VERSION = 2


def build(facts, settings, figures, rounds, rows):
    """figures: all that were wanted. A figure's values are those of all rows that it stands in; a row has its own turns."""
    failed = rounds.failed[0]
    return {
        "version": VERSION,
        "machine": facts,
        "settings": settings,
        "figures": {figure.name: {"unit": figure.unit, "own": figure.own,
                                  "values": [significant(value) for value in rounds.values(figure.name)],
                                  **({"failed": failed[figure.name]} if figure.name in failed else {})} for figure in figures},
        "rows": [row_of(row, rounds) for row in rows],
    }


def row_of(row, rounds):
    judged = [turn.of(0) for turn in rounds.judged(row.title)]
    turns = rounds.turns.get(row.title, [])
    return {"title": row.title, "figure": row.figure.name, "beside": [figure.name for figure in row.others()],
            "goals": [goal.judge(row.figure, judged) for goal in row.goals],
            "settled": sum(turn.settled() for turn in turns), "measured": len(turns),
            "turns": [{name: significant(value) for name, value in turn.items()} for turn in judged]}


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
