#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Usage: mistakes.py --source ROOT --private DIR --compiler CC --seeds N FILE...

Shows that the simulator (its sources: FILE...) sees protocol mistakes: each entry of mistakes.txt is applied to a copy
of src/transport in DIR, compiled, and must fail within N seeds. An entry that does not apply exactly once, or that
survives, fails the test; so does a copy without any mistake that fails. Prints TAP.
"""

import argparse
import os
import pathlib
import resource
import shutil
import subprocess
import sys

FLAGS = ["-std=gnu11", "-O1", "-D_GNU_SOURCE", "-w"]
SECONDS = 5  # of processor time: a mistake may also show as a run without end


def read_mistakes(path):
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


class Build:
    def __init__(self, args):
        self.args = args
        self.root = pathlib.Path(args.source)
        self.dir = pathlib.Path(args.private)
        shutil.rmtree(self.dir, ignore_errors=True)
        self.copy = self.dir / "src" / "transport"
        shutil.copytree(self.root / "src" / "transport", self.copy)
        self.objects = {}

    def compile(self, source, obj):
        # The copy comes first, so that its headers win over those of the tree.
        includes = ["-I", str(self.dir / "src"), "-I", str(self.root / "src"), "-I", str(self.root / "include"),
                    "-I", str(self.root / "tests"), "-I", str(self.root / "tests" / "sim")]
        subprocess.run([self.args.compiler, *FLAGS, *includes, "-c", str(source), "-o", str(obj)], check=True)
        return str(obj)

    def compile_transport(self, names, suffix=".o"):
        return {name: self.compile(self.copy / name, self.dir / (name + suffix)) for name in names}

    def compile_rest(self):
        sources = [pathlib.Path(f) for f in self.args.files]
        sources += [self.root / "src" / "base" / name for name in ("log.c", "reason.c", "random.c")]
        for i, source in enumerate(sources):
            self.objects[f"rest{i}"] = self.compile(source, self.dir / f"rest{i}.o")

    def run(self, instead):
        program = self.dir / "sim"
        subprocess.run([self.args.compiler, *(self.objects | instead).values(), "-o", str(program)], check=True)
        return subprocess.run([str(program), "--seeds", str(self.args.seeds)], capture_output=True, text=True,
                              errors="replace", check=False,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS)))

    def transport(self):
        return sorted(p.name for p in self.copy.glob("*.c"))


def apply(path, mistake):
    lines = path.read_text().splitlines()
    hits = [i for i, line in enumerate(lines) if line.strip() == mistake["old"]]
    if len(hits) != 1:
        return f"the line occurs {len(hits)} times in {mistake['file']}"
    lines[hits[0]] = mistake["new"]
    path.write_text("\n".join(lines) + "\n")
    return None


def judge(build, mistake):
    path = build.copy / mistake["file"]
    original = path.read_text()
    affected = build.transport() if path.suffix == ".h" else [path.name]
    trouble = apply(path, mistake)
    if trouble:
        return trouble, ""
    try:
        run = build.run(build.compile_transport(affected, ".bad.o"))
        found = next((l for l in run.stdout.splitlines() if "FAILED" in l), "the run does not end")
        return (None, found) if run.returncode else ("no seed noticed it", "")
    except subprocess.CalledProcessError as error:
        return f"does not compile: {error}", ""
    finally:
        path.write_text(original)


def main():
    parser = argparse.ArgumentParser()
    for name in ("source", "private", "compiler"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("--seeds", type=int, default=600)
    parser.add_argument("files", nargs="+")
    build = Build(parser.parse_args())
    mistakes = read_mistakes(build.root / "tests" / "sim" / "mistakes.txt")
    print(f"1..{len(mistakes) + 1}")
    build.objects = build.compile_transport(build.transport())
    build.compile_rest()
    clean = build.run({})
    print(f"{'not ok' if clean.returncode else 'ok'} 1 - without a mistake every seed passes")
    bad = clean.returncode != 0
    for number, mistake in enumerate(mistakes, 2):
        trouble, found = judge(build, mistake)
        bad = bad or trouble is not None
        print(f"{'not ok' if trouble else 'ok'} {number} - found: {mistake['mistake']}")
        print(f"# {trouble or found}", flush=True)
    shutil.rmtree(build.dir, ignore_errors=True)
    return 1 if bad else 0


os.environ.setdefault("LC_ALL", "C")
sys.exit(main())
