# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""One manual page as its scdoc source has it: sections, names, prototypes, example, references."""

import os
import re

SECTIONS = {
    "1": ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXIT STATUS", "SEE ALSO"],
    "3": ["NAME", "SYNOPSIS", "DESCRIPTION", "RETURN VALUE", "ERRORS", "EXAMPLE", "SEE ALSO"],
    "7": ["NAME", "DESCRIPTION", "ENVIRONMENT", "SEE ALSO"],
}
EXAMPLE_LINES = 40
BLOCK = re.compile(r"^```\n(.*?)^```$", re.S | re.M)


def unescape(block):
    """A block's text as the reader sees it: scdoc wants backslashes doubled."""
    return block.replace("\\\\", "\\")


class Page:
    def __init__(self, source):
        with open(source, encoding="utf-8") as handle:
            self.text = handle.read()
        self.name = os.path.basename(source)[: -len(".scd")]
        self.section = self.name.rsplit(".", 1)[1]
        self.parts = re.findall(r"^# (.*)\n", self.text, re.M)
        bodies = re.split(r"^# .*\n", self.text, flags=re.M)
        self.body = dict(zip(self.parts, bodies[1:]))
        heading = re.sub(r"\s+", " ", self.body.get("NAME", "")).replace("\\", "")
        self.names = [name.strip() for name in heading.split(" - ")[0].split(",")]
        self.synopsis = "\n".join(map(unescape, BLOCK.findall(self.body.get("SYNOPSIS", ""))))
        self.examples = [unescape(block) for block in BLOCK.findall(self.body.get("EXAMPLE", ""))]
        self.example = self.examples[0] if self.examples else ""

    def faults(self):
        """What is wrong with the form of the page."""
        wanted = SECTIONS[self.section]
        found = [part for part in self.parts if part in wanted]
        if found != wanted:
            yield f"sections {', '.join(found)}; wanted are {', '.join(wanted)}"
        if not re.match(r"[a-z_-]+\(\d\)( .*)?\n", self.text) or not self.text.startswith(
                self.name.replace(".", "(") + ")"):
            yield "the first line is not name(section)"
        if self.section == "3":
            yield from self.example_faults()
        for part, body in self.body.items():
            if not body.strip():
                yield f"{part} is empty"

    def example_faults(self):
        if len(self.examples) != 1:
            yield f"{len(self.examples)} examples, wanted is one"
        lines = self.example.splitlines()
        if len(lines) > EXAMPLE_LINES:
            yield f"the example has {len(lines)} lines, allowed are {EXAMPLE_LINES}"
        if not any(re.search(r"\b" + re.escape(name) + r"\b", self.example) for name in self.names):
            yield "the example uses nothing of what the page is about"
        raw = "".join(BLOCK.findall(self.body.get("EXAMPLE", "")))
        if "\\" in raw.replace("\\\\", ""):
            yield "a single backslash in the example: scdoc wants it doubled"

    def prose(self):
        return BLOCK.sub("", self.text).replace("\\", "")

    def references(self):
        """(name, section) of what looks like a manual page of ours."""
        return set(re.findall(r"\b(_?ibv_\w+|verbatim(?:-[a-z]+)?|mbps_to_ibv_rate|mult_to_ibv_rate)\*?_?\((1|3|7)\)", self.prose()))

    def calls(self):
        return set(re.findall(r"\b(ibv_\w+)\*?_?\(\)", self.prose()))

    def variables(self):
        """Environment variables that the page explains: those that stand alone on a line."""
        return re.findall(r"^\*([A-Z][A-Z_]+)\*$", self.body.get("ENVIRONMENT", ""), re.M)

    def options(self):
        """Options that the page explains: lines of OPTIONS such as "*-q*, *--quiet*" or "*--view=*_how_"."""
        lines = re.findall(r"^\*-.*$", self.body.get("OPTIONS", ""), re.M)
        return {option for line in lines for option in re.findall(r"(?<![\w-])(--[a-z][a-z-]*|-[A-Za-z?])", line)}
