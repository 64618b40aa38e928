# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""One line that says what went wrong, out of all that a test, a compiler or a linter has printed."""

import re

# "file:line: text", as check.h, compilers and linters print it, also behind the words with which others begin a line.
PLACE = re.compile(r"(?:^|\s)((?:\.\./)*[\w/+-][\w./+-]*\.\w+:\d+(?::\d+)?: \S.*)")
OTHERS = re.compile(r"ERROR: \w+Sanitizer: |WARNING: ThreadSanitizer: |^watchdog: |^\w*(?:Error|Exception|Failure)\b: |\berror: |^lint: .*: FAILED$")
REMARK = re.compile(r"^#\s+(\S.*)")


def lines_of(text):
    return [line.strip() for line in text.splitlines() if line.strip()]


def told(line):
    """The line from where it names the fault, or None."""
    found = PLACE.search(line)
    if found:
        return re.sub(r"^(?:\.\./)+", "", found.group(1))
    return line if OTHERS.search(line) else None


def first_fault(text):
    """The first line that names a fault; where none does, the last line."""
    lines = lines_of(text)
    return next(filter(None, map(told, lines)), lines[-1] if lines else "")


def fault_of_case(case, report, errors):
    """The same for a case of a table, by its name: a failed check says the name in brackets; other programs print remarks behind the
    line "not ok" of the TAP report."""
    for line in lines_of(errors):
        if f"[{case}]" in line and told(line):
            return told(line)
    behind = lines_of(report.partition(f" {case}\n")[2])
    remarks = []
    for line in behind:
        if not REMARK.match(line):
            break
        remarks.append(REMARK.match(line).group(1))
    return next(filter(None, map(told, remarks)), remarks[0] if remarks else first_fault(errors))


def within(text, most):
    """The text, at most so long."""
    return text if len(text) <= most else text[:most - 3] + "..."
