# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Rows: a figure of the library, the figures beside it, and goals that it should reach."""

from statistics import median

from kit.spread import ratio


class Goal:
    """`limit` times the best of some figures: at most where less is better, at least otherwise. Without figures the limit itself."""

    def __init__(self, limit, *figures, of=None):
        self.limit = limit
        self.figures = figures
        self.of = of  # what to call the figures

    def judge(self, figure, turns):
        """What became of it by these turns, each {name of a figure: value}: {"text", "ratio", "met"}; ratio and met are None where a
        figure is missing."""
        sign = "<=" if figure.lower_is_better else ">="
        text = f"{sign} {self.limit:g}" + (f" x {self.name()}" if self.figures else f" {figure.unit}")
        if self.figures:
            ratios = [ratio(turns, figure.name, other.name) for other in self.figures]
        else:
            ratios = [median(values)] if (values := [turn[figure.name] for turn in turns if figure.name in turn]) else []
        ratios = [found for found in ratios if found is not None]
        if not ratios:
            return {"text": text, "ratio": None, "met": None}
        # The best of the others is the one that leaves the least to be proud of.
        worst = max(ratios) if figure.lower_is_better else min(ratios)
        met = worst <= self.limit if figure.lower_is_better else worst >= self.limit
        return {"text": text, "ratio": float(f"{worst:.4g}"), "met": met}

    def name(self):
        return self.of or " / ".join(figure.name for figure in self.figures)


class Row:
    def __init__(self, title, figure, goals=(), beside=()):
        self.title = title
        self.figure = figure
        self.goals = list(goals)
        self.beside = list(beside)  # figures that are shown without a goal

    def figures(self):
        """All that must be measured for it, its own first, none twice."""
        found = [self.figure, *self.beside, *(other for goal in self.goals for other in goal.figures)]
        return list(dict.fromkeys(found))

    def others(self):
        return [figure for figure in self.figures() if figure is not self.figure]
