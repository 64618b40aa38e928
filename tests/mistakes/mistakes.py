#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Usage: mistakes.py --source ROOT (--applies | --build BUILD --private DIR) [--only WORD]

Shows that tests see mistakes in the rooms of the device: each entry of device.txt is applied to a copy of its file, which is
compiled and linked as the file itself was, into a library of its own in DIR and, where the program of a test holds the room
itself, into a program; one of the tests that the entry names must fail with these. Without a mistake all of them pass. An entry
that does not apply exactly once, or that survives, fails. --applies: says only whether each entry applies. Prints TAP.
"""

import argparse
import json
import os
import pathlib
import shlex
import shutil
import signal
import subprocess
import sys

sys.dont_write_bytecode = True

import planted  # noqa: E402

LIBRARY = "lib/libibverbs.so.1.18.0"
SECONDS = 30  # for one test: a mistake may also show as a wait without end


class Build:
    def __init__(self, args):
        self.source = args.source
        self.build = pathlib.Path(args.build)
        self.dir = pathlib.Path(args.private)
        shutil.rmtree(self.dir, ignore_errors=True)
        self.dir.mkdir(parents=True)
        commands = json.loads((self.build / "compile_commands.json").read_text())
        self.compiled = {os.path.normpath(self.build / c["file"]): c for c in commands if "libvb_" in c["output"]}
        tests = json.loads(self.output("meson", "introspect", "--tests", self.build))
        self.tests = {t["name"]: t for t in tests}

    @staticmethod
    def output(*command):
        return subprocess.run([str(c) for c in command], capture_output=True, text=True, check=True).stdout

    def run(self, *command):
        subprocess.run([str(c) for c in command], cwd=self.build, check=True, stdout=subprocess.DEVNULL)

    def link(self, target, made, room, objects):
        """Links the target once more as `made`, these objects in place of the room's; false if it holds no room."""
        command = shlex.split(self.output("ninja", "-C", self.build, "-t", "commands", target).splitlines()[-1])
        archive = f"src/libvb_{room}.a"
        if archive not in command:
            return False
        link = []
        for word in command:
            if word == target:
                word = str(made)
            link += objects if word == archive else [word]
        self.run(*link)
        return True

    def instead(self, file, text):
        """The room of the file and its objects, with this text in place of the file's."""
        compiled = self.compiled[str(self.source / "src" / file)]
        room = file.split("/")[0]
        source = self.dir / pathlib.Path(file).name
        instead = self.dir / "instead.o"
        source.write_text(text)
        command = shlex.split(compiled["command"])
        command[command.index("-c") + 1] = str(source)
        command[command.index("-o") + 1] = str(instead)
        for option in ("-MQ", "-MF"):  # no list of dependencies
            del command[command.index(option):command.index(option) + 2]
        self.run(*[word for word in command if word != "-MD"], "-w")
        theirs = self.build / compiled["output"]
        objects = [o for o in sorted(theirs.parent.glob("*.o")) if o.name != theirs.name]
        return room, [*objects, instead]

    def library(self, room, objects):
        self.link(LIBRARY, self.dir / "libibverbs.so.1", room, objects)
        return self.dir

    def program(self, name, room, objects):
        """The test's command, with a program of its own where that holds the room."""
        command = self.tests[name]["cmd"]
        target = os.path.relpath(command[0], self.build)
        if target.startswith("..") or not self.link(target, self.dir / "program", room, objects):
            return command
        return [str(self.dir / "program"), *command[1:]]

    def outcome(self, name, library, command=None):
        """passed, failed, or skipped: what it needs is not here."""
        test = self.tests[name]
        environment = {**os.environ, **test["env"], "LD_LIBRARY_PATH": str(library)}
        program = subprocess.Popen(command or test["cmd"], cwd=test["workdir"], env=environment, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        try:
            program.wait(SECONDS if command else test["timeout"])
        except subprocess.TimeoutExpired:
            pass
        finally:  # with all that it has started: a test that fails may leave others behind
            try:
                os.killpg(program.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        code = program.wait()
        return {0: "passed", 77: "skipped"}.get(code, "failed")


def judge(build, mistake):
    """Whether it was found; and why."""
    text, trouble = planted.plant((build.source / "src" / mistake["file"]).read_text(), mistake)
    if trouble:
        return False, trouble
    try:
        room, objects = build.instead(mistake["file"], text)
        library = build.library(room, objects)
    except subprocess.CalledProcessError as error:
        return False, f"does not compile: {error}"
    skipped = []
    for name in mistake["tests"].split():
        outcome = build.outcome(name, library, build.program(name, room, objects))
        if outcome == "failed":
            return True, f"by {name}"
        skipped += [name] if outcome == "skipped" else []
    if skipped:
        return True, f"SKIP {' '.join(skipped)} cannot run here"
    return False, "no test noticed it"


def applies(source, mistakes):
    print(f"1..{len(mistakes)}")
    bad = False
    for number, mistake in enumerate(mistakes, 1):
        trouble = planted.plant((source / "src" / mistake["file"]).read_text(), mistake)[1]
        bad |= planted.report(number, not trouble, "applies: " + mistake["mistake"], trouble or mistake["file"])
    return 1 if bad else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", required=True, type=pathlib.Path)
    parser.add_argument("--build")
    parser.add_argument("--private")
    parser.add_argument("--applies", action="store_true")
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    mistakes = [m for m in planted.read(args.source / "tests" / "mistakes" / "device.txt") if args.only in m["mistake"]]
    if args.applies:
        return applies(args.source, mistakes)
    if not args.build or not args.private:
        parser.error("--build and --private are needed")
    build = Build(args)
    print(f"1..{len(mistakes) + 1}")
    names = sorted({name for m in mistakes for name in m["tests"].split()})
    failing = [name for name in names if build.outcome(name, build.build / "lib") == "failed"]
    bad = planted.report(1, not failing, "without a mistake no test fails", " ".join(failing) or " ".join(names))
    for number, mistake in enumerate(mistakes, 2):
        good, why = judge(build, mistake)
        bad |= planted.report(number, good, "found: " + mistake["mistake"], why)
    shutil.rmtree(build.dir, ignore_errors=True)
    return 1 if bad else 0


os.environ.setdefault("LC_ALL", "C")
sys.exit(main())
