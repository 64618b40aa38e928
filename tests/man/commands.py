# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The commands of the program verbatim as its --help has them, compared with their pages."""

import re
import subprocess

SECONDS = 30
OF_ALL = {"-?", "--help", "--usage", "-V", "--version"}  # verbatim(1) has them; the page of a command may


def help_of(program, *command):
    run = subprocess.run([program, *command, "--help"], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=SECONDS,
                         check=False)
    return run.stdout if run.returncode == 0 else None


def listed(program):
    text = help_of(program) or ""
    return re.findall(r"^  ([a-z]+)\b", text.partition("Commands:")[2], re.M)


def options(text):
    """Of argp's lines: "  -q, --quiet   text" and "      --view=HOW   text"."""
    heads = [re.split(r"  +", line.strip())[0] for line in text.splitlines() if re.match(r" +-", line)]
    return {option for head in heads for option in re.findall(r"(?<![\w-])(--[a-z][a-z-]*|-[A-Za-z?])", head)}


def faults(program, command, page, overview):
    """What is wrong with the page of a command; `overview` is verbatim(1)."""
    if f"verbatim-{command}*(1)" not in overview.text:
        yield f"verbatim.1 does not refer to verbatim-{command}(1)"
    text = help_of(program, command)
    if text is None:
        yield f"verbatim {command} --help fails"
    elif page is None:
        yield f"there is no verbatim-{command}.1"
    else:
        has, says = options(text) - OF_ALL, page.options() - OF_ALL
        yield from (f"{option} is in --help and not in the page" for option in sorted(has - says))
        yield from (f"{option} is in the page and not in --help" for option in sorted(says - has))
