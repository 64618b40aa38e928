# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Figures: what is measured. A source (bench/sources) measures figures; rows (bench/rows.py) hold them against each other."""

LOWER = {"us", "ns", "wakeups", "ms", "bytes"}  # units of which less is better


class Figure:
    """One number that a source can measure. `spec` says to the source which one; `unit` is that of the number."""

    def __init__(self, source, spec, unit):
        self.source = source
        self.spec = spec
        self.unit = unit
        self.name = " ".join([source.name, *(str(word) for word in spec)])

    @property
    def own(self):
        """Whether it changes with the library."""
        return self.source.own

    @property
    def lower_is_better(self):
        return self.unit in LOWER


class Source:
    """Measures figures. Subclasses set `name`, `own`, `batch` (one call measures all figures that are wanted),
    `once` (one turn is enough), `placed` (it matters how far the two cores lie apart), and define
    units: {first word of a spec: unit} and run(session, library, specs) -> {spec: number}. What fails raises Failure."""

    name = ""
    own = False
    batch = False
    once = False
    placed = True
    units = {}

    def __init__(self):
        self.figures = {}

    def figure(self, *spec):
        if spec not in self.figures:
            self.figures[spec] = Figure(self, spec, self.unit(spec))
        return self.figures[spec]

    def unit(self, spec):
        return self.units[spec[0]]

    def run(self, session, library, specs):
        raise NotImplementedError
