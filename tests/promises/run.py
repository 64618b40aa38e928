#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Usage: run.py [--listed | --apart] [--anew] [--only REGEX]
Promise: each command in the blocks of README.md, docs/install.md and examples/README.md, and each target of the Makefile, does
what is said of it. table.py says how each is run and what is expected; one that is not in the table is a failure, and so is one
that is only there. What needs a build of its own is run in a copy of the tracked files, and remembered as long as those are the
same (scripts/remembered.py); --anew: run again. --listed: only whether the table is complete. --apart: only what is run in a
copy. Prints one TAP line a step; exits 1 when one failed."""

import argparse
import glob
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "scripts"))

import documents  # noqa: E402
import table  # noqa: E402
from remembered import digest, memory  # noqa: E402

BUILD = os.path.join(ROOT, "build")
SECONDS = 1800  # on the processor time that others leave
SKIP = 77
NOTHING_OF = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "MAKEOVERRIDES", "DESTDIR", "PREFIX", "BUILD", "VERBATIM_VIEW", "LD_PRELOAD",
              "LD_LIBRARY_PATH")


class Skip(Exception):
    """The text is the reason."""


class Report:
    def __init__(self, only):
        self.only = re.compile(only or "")
        self.number = self.failed = 0

    def case(self, name, do):
        """Runs one and prints its line, which it returns without the number; None: not asked for."""
        if not self.only.search(name):
            return None
        began, used, more = time.monotonic(), processors(), ""
        try:
            outcome = f"ok - {name}{do() or ''}"
        except Skip as reason:
            outcome = f"ok - {name} # SKIP {reason}"
        except (AssertionError, OSError, subprocess.SubprocessError) as fault:
            self.failed += 1
            outcome, more = f"not ok - {name}", "".join(f"#   {line}\n" for line in str(fault).splitlines())
        self.line(outcome, f"{more}# {time.monotonic() - began:.1f} s, of processors {processors() - used:.1f} s\n")
        return outcome

    def line(self, outcome, more=""):
        self.number += 1
        print(outcome.replace(" - ", f" {self.number} - ", 1) + "\n" + more, end="", flush=True)

    def end(self):
        print(f"1..{self.number}")
        return 1 if self.failed else 0


def demand(truth, text):
    if not truth:
        raise AssertionError(text)


def processors():
    """Seconds that ended children have taken."""
    times = os.times()
    return times.children_user + times.children_system


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


class Place:
    """Where commands are run: the tree, or a copy of it. Use as a context manager."""

    def __init__(self, copied=False, bare=False):
        self.work = tempfile.mkdtemp(prefix="verbatim-promises-")
        os.chmod(self.work, 0o755)
        self.tree = os.path.join(self.work, "tree") if copied else ROOT
        self.home = os.path.join(self.work, "home")
        os.mkdir(self.home)
        self.env = {key: value for key, value in os.environ.items() if key not in NOTHING_OF}
        self.env["PATH"] += ":/usr/sbin:/sbin"
        self.env.setdefault("CCACHE_DIR", os.path.expanduser("~/.cache/ccache"))
        # mpirun, which refuses to be run by root otherwise
        self.env |= {"HOME": self.home, "WORK": self.work, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        if bare:
            self.env["PKG_CONFIG_LIBDIR"] = self.home
        if copied:
            self.copy()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.work, ignore_errors=True)

    def copy(self):
        """The tracked files as they are now, in a repository of their own."""
        self.run(f"mkdir tree && git -C {ROOT} ls-files -z | (cd {ROOT} && tar --null --files-from=- --ignore-failed-read -cf - "
                 "2>/dev/null) | tar -C tree -xf - && cd tree && git init -q && git add -A && "
                 "git -c user.name=test -c user.email=test@example.org commit -qm copy", self.work)

    def run(self, script, folder=None, status=0):
        with subprocess.Popen(["bash", "-euo", "pipefail", "-c", script], cwd=folder or self.tree, env=self.env | {"PORT": free_port()},
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8",
                              errors="replace") as process:
            try:
                output = process.communicate(timeout=SECONDS)[0]
            except subprocess.TimeoutExpired:
                process.kill()
                raise
        if process.returncode == SKIP:
            raise Skip(output.strip().rpartition("\n")[2] or "the machine has other releases of the programs")
        demand(process.returncode == status, f"{script}: status {process.returncode}\n{output[-4000:]}")
        return output

    def step(self, step):
        lacking = [name for name in step.needs.split() if not shutil.which(name, path=self.env["PATH"])]
        if lacking:
            raise Skip(f"not installed: {' '.join(lacking)}")
        lacking = step.group and missing(step.group)
        if lacking:
            raise Skip(f"packages are not installed: {lacking}")
        output = self.run(script_of(step), status=step.status)
        demand(re.search(step.says, output, re.M), f"{script_of(step)}: no {step.says!r} in\n{output[-4000:]}")
        made = [os.path.join(base, step.makes) for base in (self.tree, self.work)]
        demand(not step.makes or any(glob.glob(name) for name in made), f"{script_of(step)}: made no {step.makes}\n{output[-4000:]}")


def missing(group):
    return subprocess.run(["scripts/setup", "--missing", group], cwd=ROOT, stdout=subprocess.PIPE, encoding="utf-8",
                          check=True).stdout.strip()


def changed(text, pairs):
    for what, instead in pairs:
        text = text.replace(what, instead)
    return text


def script_of(step):
    texts = [changed(text, step.change) for text in step.done]
    script = (step.run or "{texts}").replace("{texts}", "\n".join(texts)).replace("{first}", texts[0])
    return script.replace("{second}", texts[-1])


def name_of(step):
    return "; ".join(step.done)


def everything():
    return [step for apart in table.APART for step in apart.steps] + table.HERE + table.ELSEWHERE


def listed():
    promised = {command: where for where, command in documents.promised(ROOT)}
    known = {text for step in everything() for text in step.done}
    demand(len(promised) > 30, f"found only {sorted(promised)}")
    lost = [f"{where}: {command}" for command, where in promised.items() if command not in known]
    demand(not lost, "tests/promises/table.py does not say how these are run:\n" + "\n".join(lost))
    demand(known <= set(promised), f"promised nowhere: {sorted(known - set(promised))}")


def elsewhere(one):
    if one.part:
        said = subprocess.run(["scripts/check", "--help"], cwd=ROOT, stdout=subprocess.PIPE, encoding="utf-8", check=True).stdout
        demand(re.search(rf"[{{,]{one.part}[,}}]", said), f"scripts/check has no part {one.part}")
        return f" (by scripts/check: {one.part})"
    tests = json.loads(subprocess.run(["meson", "introspect", "--tests", BUILD], stdout=subprocess.PIPE, check=True).stdout)
    demand(one.test in {test["name"] for test in tests}, f"there is no test {one.test}")
    return f" (by the test {one.test})"


def mark_of(apart):
    """A name for all that the steps depend on."""
    names = subprocess.run(["git", "-C", ROOT, "ls-files", "-z"], stdout=subprocess.PIPE, encoding="utf-8", check=True).stdout.split("\0")
    paths = [os.path.join(ROOT, name) for name in names if name and (not name.startswith(apart.without) or name.startswith("tests/promises/"))]
    machine = [shutil.which(name) or "" for step in apart.steps for name in step.needs.split()]
    packages = [missing(group) for group in sorted({step.group for step in apart.steps} - {""})]
    compiler = subprocess.run(["cc", "--version"], stdout=subprocess.PIPE, encoding="utf-8", check=True).stdout
    return digest([path for path in paths if os.path.isfile(path)], apart.name, compiler, str(os.geteuid()), *machine, *packages)


def run_apart(report, apart, anew):
    if not any(report.only.search(name_of(step)) for step in apart.steps):
        return
    if not os.path.exists(os.path.join(ROOT, ".git")):
        for step in apart.steps:
            report.line(f"ok - {name_of(step)} # SKIP these sources are no checkout of git, which the copy is made by")
        return
    folder = memory("promises", BUILD)
    mark = folder and os.path.join(folder, mark_of(apart))
    if mark and not anew and os.path.exists(mark):
        os.utime(mark)
        with open(mark, encoding="utf-8") as handle:
            for outcome in json.load(handle):
                report.line(re.sub("( # SKIP |$)", " (as before: from the same files)\\1", outcome, count=1))
        return
    with Place(True, apart.bare) as place:
        outcomes = [report.case(name_of(step), lambda step=step: place.step(step)) for step in apart.steps]
    if mark and all(outcome and outcome.startswith("ok") for outcome in outcomes):
        with open(mark, "w", encoding="utf-8") as handle:
            json.dump(outcomes, handle)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    for option in ("--listed", "--apart", "--anew"):
        parser.add_argument(option, action="store_true")
    parser.add_argument("--only")
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    report = Report(args.only)
    if not args.apart:
        report.case("every command and target has its place", listed)
    if not args.listed:
        for apart in table.APART:
            run_apart(report, apart, args.anew)
    if not args.listed and not args.apart:
        for one in table.ELSEWHERE:
            report.case(name_of(one), lambda one=one: elsewhere(one))
        with Place() as place:
            for step in table.HERE:
                report.case(name_of(step), lambda step=step: place.step(step))
    return report.end()


sys.exit(main())
