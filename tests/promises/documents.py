# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The commands that the documents have in their blocks of code, and the targets of the Makefile."""

import os
import re

DOCUMENTS = ("README.md", "docs/install.md", "examples/README.md")
INDENT = "    "


def blocks(text):
    """Lines of blocks: those indented by four blanks, and fenced ones."""
    fenced = False
    for line in text.splitlines():
        if line.startswith("```"):
            fenced = not fenced
        elif fenced:
            yield line
        elif line.startswith(INDENT):
            yield line[len(INDENT):]


def commands(text):
    """What follows two blanks or a # is said about a command; a line that begins with blanks goes on with that."""
    return [re.split(r"  +| # ", line)[0].rstrip() for line in blocks(text) if line.strip() and not line.startswith(" ")]


def targets(makefile):
    rules = re.findall(r"^([a-z][\w-]*(?: [a-z][\w-]*)*):(?!=)", makefile, re.M)
    return sorted({target for rule in rules for target in rule.split()} - {"all"})


def promised(root):
    """(where it stands, command), each command once."""
    found = {}
    for name in DOCUMENTS:
        with open(os.path.join(root, name), encoding="utf-8") as handle:
            for command in commands(handle.read()):
                found.setdefault(command, name)
    with open(os.path.join(root, "Makefile"), encoding="utf-8") as handle:
        for target in targets(handle.read()):
            found.setdefault(f"make {target}", "Makefile")
    return [(where, command) for command, where in found.items()]
