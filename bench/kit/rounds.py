# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Measures rows in rounds. In a turn of a row its own figure and those beside it are measured one directly after the other, and a
cache line's trip before, between and after them: where the trip has changed, the cores of a virtual machine have moved meanwhile,
and the turn says nothing about ratios. Such a turn is not settled, and the row gets another one."""

import sys
import time
from statistics import median

from kit.session import Failure

GIVE_UP = 2  # failures in turn after which a figure is not tried again
SAME_PLACE = 1.5  # trips that differ by less are of cores that lie equally far apart
ENOUGH = 3  # settled turns, to leave out the others
MOST = 3  # turns of a row for each round that is wanted


class Turn:
    """values: {(number of the library, name of the figure): number}; trips: us."""

    def __init__(self):
        self.values = {}
        self.trips = []

    def settled(self):
        return not self.trips or max(self.trips) <= SAME_PLACE * min(self.trips)

    def of(self, number):
        """{name: value} that holds for one library: its own figures, and those that no library changes."""
        return {name: value for (whose, name), value in self.values.items() if whose in (0, number)} | \
               {name: value for (whose, name), value in self.values.items() if whose == number}


class Rounds:
    """libraries: those that own figures are measured of. line: the figure of a cache line's trip, or None."""

    def __init__(self, session, libraries, line=None):
        self.session = session
        self.libraries = libraries
        self.line = line
        self.turns = {}  # by the row's title
        self.loose = {}  # {name: values} of figures that were measured without a row, of the first library
        self.failed = [{} for _ in libraries]
        self.in_turn = {}
        self.seconds = {}  # spent in each source

    def run(self, rows, wanted):
        """As many turns of each row as are wanted, round by round; more for rows of which too few are settled."""
        for turn in range(wanted * MOST):
            rows = [row for row in rows if turn < (1 if row.figure.source.once else wanted) or self.lacks(row, wanted)]
            for row in rows:
                self.turns.setdefault(row.title, []).append(self.measure_row(row, turn))

    def lacks(self, row, wanted):
        if row.figure.source.once or not self.placed(row) or self.gave_up(row.figure):
            return False
        return sum(turn.settled() for turn in self.turns[row.title]) < wanted

    def placed(self, row):
        """Whether it matters where the cores are."""
        return self.line is not None and any(figure.source.placed for figure in self.figures_of(row))

    def gave_up(self, figure):
        return all(self.in_turn.get((number, figure.name), 0) >= GIVE_UP for number in range(len(self.libraries)))

    def figures_of(self, row):
        """Of two builds only their own figures are measured."""
        return [figure for figure in row.figures() if figure.own or len(self.libraries) == 1]

    def measure_row(self, row, number):
        turn, placed = Turn(), self.placed(row)
        for source, specs in calls(self.figures_of(row)):
            order = range(len(self.libraries)) if source.own else [0]
            for library in order if number % 2 == 0 else reversed(order):  # no library is always the first
                self.note_trip(turn, placed)
                names = {spec: source.figure(*spec).name for spec in specs}
                turn.values.update({(library, names[spec]): value for spec, value in self.call(source, specs, library).items()})
        self.note_trip(turn, placed)
        return turn

    def note_trip(self, turn, placed):
        if placed:
            turn.trips += self.call(self.line.source, [self.line.spec], 0).values()

    def measure(self, figures, keep=True):
        """Each of these figures once, without a row. keep=False: a warm-up, whose values are forgotten."""
        for source, specs in calls(figures):
            for number in range(len(self.libraries)) if source.own else [0]:
                for spec, value in self.call(source, specs, number).items():
                    if keep:
                        self.loose.setdefault(source.figure(*spec).name, []).append(value)

    def call(self, source, specs, number):
        """{spec: value} of those that could be measured."""
        names = {spec: source.figure(*spec).name for spec in specs}
        specs = [spec for spec in specs if self.in_turn.get((number, names[spec]), 0) < GIVE_UP]
        if not specs:
            return {}
        start = time.monotonic()
        try:
            found = source.run(self.session, self.libraries[number], specs)
        except (Failure, OSError) as fault:
            reason = " ".join(str(fault).split())
            print(f"bench: {names[specs[0]]}: {reason}", file=sys.stderr)
            for spec in specs:
                self.failed[number][names[spec]] = reason[:300]
                self.in_turn[(number, names[spec])] = self.in_turn.get((number, names[spec]), 0) + 1
            return {}
        finally:
            self.seconds[source.name] = self.seconds.get(source.name, 0) + time.monotonic() - start
        for spec in found:
            self.in_turn[(number, names[spec])] = 0
        return found

    def judged(self, title):
        """The turns by which a row is judged: the settled ones, all where those are too few."""
        turns = self.turns.get(title, [])
        settled = [turn for turn in turns if turn.settled()]
        return settled if len(settled) >= min(ENOUGH, len(turns)) else turns

    def values(self, name, number=0):
        """All values of a figure, in whichever row it was measured."""
        found = [value for title in self.turns for turn in self.judged(title) if (value := turn.of(number).get(name)) is not None]
        return found + self.loose.get(name, [])

    def placed_values(self, name):
        """(the trip's us, value) of a figure, by settled turns."""
        return [(median(turn.trips), turn.values[(0, name)]) for turns in self.turns.values() for turn in turns
                if turn.trips and turn.settled() and (0, name) in turn.values]

    def trips(self):
        return [trip for turns in self.turns.values() for turn in turns for trip in turn.trips]


def calls(figures):
    """(source, specs) in the order of the figures: all figures of a batching source in one call, others one by one."""
    done = set()
    for figure in figures:
        if not figure.source.batch:
            yield figure.source, [figure.spec]
        elif figure.source not in done:
            done.add(figure.source)
            yield figure.source, [other.spec for other in figures if other.source is figure.source]
