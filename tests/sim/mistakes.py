#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Usage: mistakes.py --source ROOT --private DIR --compiler CC --room ROOM --list LIST --library LIBRARY... --seeds N FILE...

Shows that a simulator (its sources: FILE..., beside the libraries of the rooms below) sees protocol mistakes: each entry of
LIST is applied to a copy of src/ROOM in DIR, compiled, and must fail within N seeds. An entry that does not apply
exactly once, or that survives, fails the test; so does a copy without any mistake that fails. Prints TAP.
"""

import argparse
import os
import pathlib
import resource
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "mistakes"))

import planted  # noqa: E402

FLAGS = ["-std=gnu11", "-O1", "-D_GNU_SOURCE", "-w"]
SECONDS = 5  # of processor time: a mistake may also show as a run without end


class Build:
    def __init__(self, args):
        self.args = args
        self.root = pathlib.Path(args.source)
        self.dir = pathlib.Path(args.private)
        shutil.rmtree(self.dir, ignore_errors=True)
        self.copy = self.dir / "src" / args.room
        shutil.copytree(self.root / "src" / args.room, self.copy)
        self.objects = {}

    def compile(self, source, obj):
        # The copy comes first, so that its headers win over those of the tree.
        includes = ["-I", str(self.dir / "src"), "-I", str(self.root / "src"), "-I", str(self.root / "include"),
                    "-I", str(self.root / "tests"), "-I", str(pathlib.Path(self.args.files[0]).parent)]
        subprocess.run([self.args.compiler, *FLAGS, *includes, "-c", str(source), "-o", str(obj)], check=True)
        return str(obj)

    def compile_room(self, names, suffix=".o"):
        return {name: self.compile(self.copy / name, self.dir / (name + suffix)) for name in names}

    def compile_rest(self):
        for i, source in enumerate(self.args.files):
            self.objects[f"rest{i}"] = self.compile(source, self.dir / f"rest{i}.o")

    def run(self, instead):
        program = self.dir / "sim"
        subprocess.run([self.args.compiler, *(self.objects | instead).values(), *self.args.library, "-o", str(program)],
                       check=True)
        return subprocess.run([str(program), "--seeds", str(self.args.seeds)], capture_output=True, text=True,
                              errors="replace", check=False,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS)))

    def room(self):
        return sorted(p.name for p in self.copy.glob("*.c"))


def judge(build, mistake):
    """Whether it was found; and by what, or why not."""
    path = build.copy / mistake["file"]
    original = path.read_text()
    affected = build.room() if path.suffix == ".h" else [path.name]
    wrong, trouble = planted.plant(original, mistake)
    if trouble:
        return False, trouble
    path.write_text(wrong)
    try:
        run = build.run(build.compile_room(affected, ".bad.o"))
        found = next((l for l in run.stdout.splitlines() if "FAILED" in l), "the run does not end")
        return (True, found) if run.returncode else (False, "no seed noticed it")
    except subprocess.CalledProcessError as error:
        return False, f"does not compile: {error}"
    finally:
        path.write_text(original)


def main():
    parser = argparse.ArgumentParser()
    for name in ("source", "private", "compiler", "room", "list"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("--library", action="append", required=True)
    parser.add_argument("--seeds", type=int, default=600)
    parser.add_argument("files", nargs="+")
    build = Build(parser.parse_args())
    mistakes = planted.read(pathlib.Path(build.args.list))
    print(f"1..{len(mistakes) + 1}")
    build.objects = build.compile_room(build.room())
    build.compile_rest()
    clean = build.run({})
    bad = planted.report(1, clean.returncode == 0, "without a mistake every seed passes", f"status {clean.returncode}")
    for number, mistake in enumerate(mistakes, 2):
        good, why = judge(build, mistake)
        bad |= planted.report(number, good, "found: " + mistake["mistake"], why)
    shutil.rmtree(build.dir, ignore_errors=True)
    return 1 if bad else 0


os.environ.setdefault("LC_ALL", "C")
sys.exit(main())
