# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""A result as text: a table for the terminal, and one for a page."""

from kit.result import number, span
from kit.spread import ratio


def values_of(row, name):
    return [turn[name] for turn in row["turns"] if name in turn]


def value_text(result, row, name):
    """A figure in the turns of the row."""
    figure, values = result["figures"].get(name, {}), values_of(row, name)
    if not values:
        return f"failed: {figure.get('failed', 'not measured')}"
    text = f"{span(values)} {figure['unit']}"
    return text + (f"; a round failed: {figure['failed']}" if "failed" in figure else "")


def goal_text(goal):
    if goal["met"] is None:
        return f"{goal['text']}: no figure"
    return f"{number(goal['ratio'])} ({goal['text']}): {'met' if goal['met'] else 'MISSED'}"


def beside_text(result, row, name):
    """A figure beside the row's own, and what the row's own is of it."""
    values = values_of(row, name)
    if not values:
        return f"{name} {value_text(result, row, name)}"
    found = ratio(row["turns"], row["figure"], name)
    return f"{name} {span(values)}" + (f", x{number(found)}" if found is not None else "")


def moved_text(row):
    """Nothing, but where the row was judged by turns in which the cores moved."""
    few = row["settled"] < len(row["turns"])
    return f"; the cores moved in {row['measured'] - row['settled']} of {row['measured']} turns" if few else ""


def lines(result):
    """For the terminal: each row's figure, then its goals, then what stands beside it with the ratio to it."""
    for row in result["rows"]:
        yield f"{row['title']:52} {value_text(result, row, row['figure'])}{moved_text(row)}"
        for goal in row["goals"]:
            yield f"    {goal_text(goal)}"
        for name in row["beside"]:
            yield f"        {beside_text(result, row, name)}"


def counts(result):
    goals = [goal for row in result["rows"] for goal in row["goals"]]
    met = sum(goal["met"] is True for goal in goals)
    missed = sum(goal["met"] is False for goal in goals)
    failed = sum(not values_of(row, row["figure"]) for row in result["rows"])
    return f"{len(result['rows'])} rows; goals: {met} met, {missed} missed, {len(goals) - met - missed} without a figure; {failed} rows failed"


def escape(text):
    return text.replace("|", "\\|")


def page(result, charts):
    """Markdown."""
    machine, settings = result["machine"], result["settings"]
    yield "<!-- SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only -->"
    yield "<!-- Written by bench/run --keep. -->"
    yield "# How fast it is"
    yield ""
    yield "One run of `make bench`: " + ", ".join(f"{key} {value}" for key, value in machine.items()) + "."
    yield (f"{settings['rounds']} rounds, medians with the least and the greatest; server on core {settings['server core']}, client on "
           f"core {settings['client core']}. Only ratios within one run mean something elsewhere. A ratio is the median of those of the "
           "row's turns: in a turn, what is compared was measured one directly after the other, and a cache line's trip between the "
           "cores took as long before as after.")
    yield f"{counts(result)}."
    yield ""
    for chart in charts:
        yield f"![{chart} over message size]({chart}.svg)"
        yield ""
    yield "| row | verbatim | goal | beside it |"
    yield "|---|---|---|---|"
    for row in result["rows"]:
        goals = "<br>".join(goal_text(goal) for goal in row["goals"])
        beside = "<br>".join(beside_text(result, row, name) for name in row["beside"])
        yield "| " + " | ".join(escape(cell) for cell in (row["title"], value_text(result, row, row["figure"]) + moved_text(row), goals, beside)) + " |"
    yield ""
    yield from NOTES


NOTES = """Latencies are half a round trip, but for READ and ATOMIC: those are the whole operation. Rows of the library are by
unmodified perftest and ucx_perftest, those of mapped memory, threads and idle processes by the programs of `bench/own`. UCX and
Open MPI run over their own shared memory. Linux `rdma_rxe` is not here: `make interop` meets it in an emulated machine, whose
speed says nothing.""".split("\n")
