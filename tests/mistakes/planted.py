# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Lists of planted one-line mistakes, and how what became of each is told. A list has blocks of "key: value" lines: `mistake` says
what is wrong, `file` is the file, `old` a line that stands there exactly once (leading blanks aside), `new` what replaces it."""


def read(path):
    blocks, block = [], {}
    for line in path.read_text().splitlines() + [""]:
        if line.startswith("#"):
            continue
        if not line.strip():
            if block:
                blocks.append(block)
            block = {}
            continue
        key, _, value = line.partition(": ")
        block[key] = value
    return blocks


def plant(text, mistake):
    """The text of the file with the mistake, or None; and why it does not apply, or None."""
    lines = text.splitlines()
    hits = [i for i, line in enumerate(lines) if line.strip() == mistake["old"]]
    if len(hits) != 1:
        return None, f"the line occurs {len(hits)} times in {mistake['file']}"
    lines[hits[0]] = mistake["new"]
    return "\n".join(lines) + "\n", None


def report(number, good, name, why):
    """Prints a TAP line; a reason that begins with SKIP makes it a skip. Returns whether it is bad."""
    remark = f" # {why}" if why.startswith("SKIP") else f"\n# {why}"
    print(f"{'ok' if good else 'not ok'} {number} - {name}{remark}", flush=True)
    return not good
