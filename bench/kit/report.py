# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""A result as text: a table for the terminal, and one for a page."""

from kit.result import number, span
from kit.spread import ratio


def value_text(result, name):
    figure = result["figures"].get(name, {})
    if not figure.get("values"):
        return f"failed: {figure.get('failed', 'not measured')}"
    text = f"{span(figure['values'])} {figure['unit']}"
    return text + (f"; a round failed: {figure['failed']}" if "failed" in figure else "")


def goal_text(goal):
    if goal["met"] is None:
        return f"{goal['text']}: no figure"
    return f"{number(goal['ratio'])} ({goal['text']}): {'met' if goal['met'] else 'MISSED'}"


def beside_text(result, name, own):
    """A figure beside the row's own (its values), and what the row's own is of it."""
    values = result["figures"].get(name, {}).get("values")
    if not values:
        return f"{name} {value_text(result, name)}"
    found = ratio(own, values) if own else None
    return f"{name} {span(values)}" + (f", x{number(found)}" if found is not None else "")


def lines(result):
    """For the terminal: each row's figure, then its goals, then what stands beside it with the ratio to it."""
    for row in result["rows"]:
        own = result["figures"].get(row["figure"], {}).get("values")
        yield f"{row['title']:52} {value_text(result, row['figure'])}"
        for goal in row["goals"]:
            yield f"    {goal_text(goal)}"
        for name in row["beside"]:
            yield f"        {beside_text(result, name, own)}"


def counts(result):
    goals = [goal for row in result["rows"] for goal in row["goals"]]
    met = sum(goal["met"] is True for goal in goals)
    missed = sum(goal["met"] is False for goal in goals)
    failed = sum(not result["figures"].get(row["figure"], {}).get("values") for row in result["rows"])
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
           f"core {settings['client core']}. Only ratios within one run mean something elsewhere.")
    yield f"{counts(result)}."
    yield ""
    for chart in charts:
        yield f"![{chart} over message size]({chart}.svg)"
        yield ""
    yield "| row | verbatim | goal | beside it |"
    yield "|---|---|---|---|"
    for row in result["rows"]:
        own = result["figures"].get(row["figure"], {}).get("values")
        goals = "<br>".join(goal_text(goal) for goal in row["goals"])
        beside = "<br>".join(beside_text(result, name, own) for name in row["beside"])
        yield "| " + " | ".join(escape(cell) for cell in (row["title"], value_text(result, row["figure"]), goals, beside)) + " |"
    yield ""
    yield from NOTES


NOTES = """Latencies are half a round trip, but for READ and ATOMIC: those are the whole operation. Rows of the library are by
unmodified perftest and ucx_perftest, those of mapped memory, threads and idle processes by the programs of `bench/own`. UCX and
Open MPI run over their own shared memory. Linux `rdma_rxe` is not here: `make interop` meets it in an emulated machine, whose
speed says nothing.""".split("\n")
