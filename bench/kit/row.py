# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Rows: a figure of the library, the figures beside it, and goals that it should reach."""

from statistics import median


class Goal:
    """`limit` times the best of some figures: at most where less is better, at least otherwise. Without figures the limit itself."""

    def __init__(self, limit, *figures, share=1.0, of=None):
        self.limit = limit
        self.figures = figures
        self.share = share  # of the other figure: 0.5 for a limit that is said in halves
        self.of = of  # what to call the figures

    def judge(self, figure, measured):
        """What became of it: {"text", "ratio", "met"}; ratio and met are None where a figure is missing."""
        sign = "<=" if figure.lower_is_better else ">="
        text = f"{sign} {self.limit:g}" + (f" x {self.name()}" if self.figures else f" {figure.unit}")
        values = measured.get(figure.name)
        others = [median(measured[other.name]) for other in self.figures if measured.get(other.name)]
        if not values or (self.figures and not others):
            return {"text": text, "ratio": None, "met": None}
        best = (min if figure.lower_is_better else max)(others) if others else 1.0
        ratio = median(values) / best if best else 0.0
        met = ratio <= self.limit if figure.lower_is_better else ratio >= self.limit
        return {"text": text, "ratio": ratio, "met": met}

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
