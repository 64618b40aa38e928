#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Usage: man/render.py OUTPUT SCDOC PAGE.scd...
Makes the manual pages: OUTPUT/manN/NAME.N of each source, and for each further name of its NAME section a page that
only refers to it. A source's backslashes are doubled, as scdoc wants them."""

import os
import re
import shutil
import subprocess
import sys

SECTIONS = ("1", "3", "7")


def names_of(text):
    """The names before the dash of the NAME section; they may run over several lines."""
    found = re.search(r"^# NAME\n\n(.*?) - ", text, re.S | re.M)
    return [name.strip().replace("\\", "") for name in found.group(1).replace("\n", " ").split(",")] if found else []


def render(output, scdoc, sources):
    """Returns the pages made: name with section, and for an alias the page it refers to, else None."""
    made = {}
    for section in SECTIONS:
        shutil.rmtree(os.path.join(output, "man" + section), ignore_errors=True)
        os.makedirs(os.path.join(output, "man" + section))
    for source in sources:
        with open(source, encoding="utf-8") as handle:
            text = handle.read()
        page = os.path.basename(source)[: -len(".scd")]
        section = page.rsplit(".", 1)[1]
        folder = os.path.join(output, "man" + section)
        run = subprocess.run([scdoc], input=text, stdout=subprocess.PIPE, encoding="utf-8", check=False)
        if run.returncode != 0:
            sys.exit(f"{source}: scdoc refuses it")
        for name in names_of(text):
            alias = f"{name}.{section}"
            if alias in made:
                sys.exit(f"{source}: {alias} is a name of {made[alias] or 'a page of its own'} already")
            made[alias] = None if alias == page else page
            with open(os.path.join(folder, alias), "w", encoding="utf-8") as handle:
                handle.write(run.stdout if alias == page else f".so man{section}/{page}\n")
        if page not in made:
            sys.exit(f"{source}: its NAME section does not name {page}")
    return made


if __name__ == "__main__":
    render(sys.argv[1], sys.argv[2], sys.argv[3:])
