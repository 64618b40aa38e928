#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Usage: paths.py --lib DIR --verbatim PROGRAM --paths PROGRAM --early LIBRARY [--only REGEX]
Promise: with the preloaded library each path function finds the files of the view under the names of /sys and /dev, as it finds them
under their own; other paths give what they give without it, errno and all; programs in C, C++, Python and the shell see the
files, and what no preloaded library can reach does not. Prints one TAP line a case; exits 1 when one failed."""

import argparse
import difflib
import os
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True

from place import Failure, Place, Report, Skip, small_tree, users  # noqa: E402

OUTSIDE = ["/", "/etc/passwd", "/etc/", "/none", "/etc/passwd/x", "", ".", "..", "relative", "sys", "dev/null", "/dev/null", "/dev",
           "/sys", "/sys/class", "/sys/class/net", "/sys/class/net/lo/address", "/sys/class/infinibandx", "/sys/devices/none",
           "/sys/devices/pci76", "/sys/bus/pci", "/sys/bus/pci/devices/none", "/dev/infinibandx/uverbs0", "/sys/../sys/class/net/lo",
           "/usr/../etc/passwd", "//etc//passwd", "/dev/stdin", "/" + "x" * 255, "/" + "x" * 256, "/sys/class/" + "x" * 300,
           "/sys" + "/x" * 3000]
CPP = r"""
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
namespace fs = std::filesystem;
int main() {
    const fs::path dev = "/sys/class/infiniband/vb_test0";
    std::string line;
    std::ifstream(dev / "ports/1/state") >> line;
    std::cout << line << ' ' << fs::exists(dev) << fs::is_symlink(dev) << fs::is_directory(dev / "ports") << ' '
              << fs::file_size(dev / "node_guid") << ' ' << fs::canonical(dev / "device").string() << ' '
              << fs::weakly_canonical(dev / "device/none").string() << ' ' << fs::read_symlink(dev).string() << ' '
              << fs::is_character_file("/dev/infiniband/uverbs_test0")
              << fs::equivalent(dev, "/sys/devices/pci7662:00/7662:02:00.0/infiniband/vb_test0") << '\n';
    for (const auto &entry : fs::directory_iterator("/sys/class/infiniband"))
        std::cout << entry.path().string() << '\n';
    int files = 0;
    for (const auto &entry : fs::recursive_directory_iterator(dev / "ports"))
        files += entry.is_regular_file();
    std::cout << files << " files\n";
}
"""
CPP_SAYS = """4: 111 20 /sys/devices/pci7662:00/7662:02:00.0 /sys/devices/pci7662:00/7662:02:00.0/none \
../../devices/pci7662:00/7662:02:00.0/infiniband/vb_test0 11
/sys/class/infiniband/vb_test0
2 files
"""
PYTHON_PROGRAM = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable  # one that every user may start
PYTHON = """
import glob, os, pathlib
dev = "/sys/class/infiniband/vb_test0"
print(open(dev + "/ports/1/state").read().strip(), os.listdir("/sys/class/infiniband"), os.path.realpath(dev + "/device"))
print(glob.glob("/sys/class/infiniband/*/ports/*/state"), sorted(p.name for p in pathlib.Path(dev).iterdir()))
print(sorted(n for n in os.listdir("/sys/bus/pci/devices") if n.startswith("7662")), os.path.exists("/dev/infiniband/uverbs_test0"))
os.chdir(dev)
print(os.getcwd(), os.readlink("/proc/self/cwd"), [d for d, _, _ in os.walk(dev)][:2])
"""
PYTHON_SAYS = """4: ACTIVE ['vb_test0'] /sys/devices/pci7662:00/7662:02:00.0
['/sys/class/infiniband/vb_test0/ports/1/state'] ['device', 'node_guid', 'ports']
['7662:02:00.0'] True
/sys/devices/pci7662:00/7662:02:00.0/infiniband/vb_test0 /sys/devices/pci7662:00/7662:02:00.0/infiniband/vb_test0 \
['/sys/class/infiniband/vb_test0', '/sys/class/infiniband/vb_test0/ports']
"""
DEV = "/sys/class/infiniband/vb_test0"
PROGRAMS = [
    ("bash", ["bash", "-c", f"""[ -e {DEV} ] && [ -d {DEV}/ports ] && [ -c /dev/infiniband/uverbs_test0 ] && echo there
        echo /sys/class/infiniband/*; read -r line < {DEV}/ports/1/state; echo "$line"
        cd {DEV}/device && pwd && pwd -P && cd ../.. && pwd -P; cd {DEV} && cat ports/1/state"""],
     "there\n/sys/class/infiniband/vb_test0\n4: ACTIVE\n/sys/class/infiniband/vb_test0/device\n"
     "/sys/devices/pci7662:00/7662:02:00.0\n/sys/class/infiniband\n4: ACTIVE\n"),
    ("sh", ["sh", "-c", f"test -r {DEV}/ports/1/state && cat {DEV}/ports/1/state; for d in /sys/class/infiniband/*; do echo $d; done"],
     "4: ACTIVE\n/sys/class/infiniband/vb_test0\n"),
    ("find", ["find", "/sys/class/infiniband/", "-name", "vb*"], "/sys/class/infiniband/vb_test0\n"),
    ("find -L", ["find", "-L", DEV + "/ports", "-type", "f"], None),
    ("ls", ["ls", "/sys/class/infiniband"], "vb_test0\n"),
    ("ls -l", ["sh", "-c", "ls -l /sys/class/infiniband | grep -o 'vb.*'"],
     "vb_test0 -> ../../devices/pci7662:00/7662:02:00.0/infiniband/vb_test0\n"),
    ("readlink -f", ["readlink", "-f", DEV + "/device"], "/sys/devices/pci7662:00/7662:02:00.0\n"),
    ("realpath", ["realpath", DEV], "/sys/devices/pci7662:00/7662:02:00.0/infiniband/vb_test0\n"),
    ("cat", ["cat", DEV + "/device/vendor"], "0x7662\n"),
    ("stat", ["stat", "-c", "%F", "-L", "/dev/infiniband/uverbs_test0"], "character special file\n"),
    ("grep -r", ["grep", "-r", "ACTIVE", DEV + "/ports"], DEV + "/ports/1/state:4: ACTIVE\n"),
    ("python", [PYTHON_PROGRAM, "-c", PYTHON], PYTHON_SAYS),
]
STATIC = """
#define _GNU_SOURCE
#include <fcntl.h>
#include <unistd.h>
#include <sys/syscall.h>
int main(void) { return RAW < 0; }
"""


def differ(what, one, other):
    if one != other:
        lines = list(difflib.unified_diff(one.splitlines(), other.splitlines(), "with the library", "without", lineterm="", n=0))
        raise Failure(f"{what}:\n" + "\n".join(lines[:60]))


class Paths:
    def __init__(self, place, args):
        self.place = place
        self.paths = place.program(os.path.abspath(args.paths))
        self.early = place.program(os.path.abspath(args.early))
        self.tree = os.path.join(place.dir, "tree")
        small_tree(self.tree)
        for folder, _, _ in os.walk(self.tree):
            os.chown(folder, place.uid, -1)
        self.view = {"LD_PRELOAD": os.path.join(place.lib, "libverbatim-view.so"), "VERBATIM_VIEW": self.tree}

    def shown(self, *argv, env=None, **more):
        return self.place.run(*argv, env={**self.view, **(env or {})}, **more)[0]

    def inside(self):
        with_it = self.shown(self.paths, "inside", "")
        differ("files of the view", with_it, self.place.run(self.paths, "inside", self.tree)[0])
        if with_it.count("4: ACTIVE") < 8 or with_it.count("\n") < 1000:
            raise Failure(f"the calls have seen little:\n{with_it[:2000]}")

    def outside(self):
        for cwd in ("/", "/etc", "/usr/bin"):
            for _ in range(3):  # other programs change files meanwhile
                with_it = self.shown(self.paths, "outside", *OUTSIDE, cwd=cwd)
                without = self.place.run(self.paths, "outside", *OUTSIDE, cwd=cwd)[0]
                if with_it == without:
                    break
            differ(f"other files, in {cwd}", with_it, without)

    def told(self):
        self.shown(self.paths, "told")

    def inert(self):
        """Without a view that is this user's alone nothing changes."""
        plain = self.place.run(self.paths, "outside", *OUTSIDE, DEV)[0]
        open_tree = os.path.join(self.place.dir, "open")
        os.mkdir(open_tree)
        os.chmod(open_tree, 0o777)
        foreign = "/etc" if self.place.uid else None
        for value in (None, "", "relative", "/none", "/etc/passwd", open_tree, foreign):
            differ(f"VERBATIM_VIEW={value}", self.shown(self.paths, "outside", *OUTSIDE, DEV, env={"VERBATIM_VIEW": value}), plain)
        os.rmdir(open_tree)

    def early_calls(self):
        """Calls before the constructor ran, in either order of the preloads, and of a library that is loaded later."""
        env = {"EARLY_FILE": DEV + "/ports/1/state"}
        shim = self.view["LD_PRELOAD"]
        for order in (f"{self.early}:{shim}", f"{shim}:{self.early}"):
            out = self.shown(self.paths, env={**env, "LD_PRELOAD": order})
            if out != "constructor: 4: ACTIVE\n":
                raise Failure(f"LD_PRELOAD={order}: {out}")
        out = self.shown(self.paths, "load", self.early, env=env)
        if out != "constructor: 4: ACTIVE\nloaded: 4: ACTIVE\n":
            raise Failure(f"a library that is loaded while the program runs: {out}")

    def storm(self):
        self.shown(self.paths, "storm")

    def missed(self):
        """What no preloaded library reaches: shown, so that it is noticed when it changes."""
        self.shown(self.paths, "beside")
        out = self.shown(self.paths, "load-deep", self.early, env={"EARLY_FILE": DEV + "/ports/1/state"})
        if "loaded: nothing" not in out:
            raise Failure(f"RTLD_DEEPBIND: {out}")
        file = f'"{DEV}/ports/1/state"'
        for name, call, options in (("raw system call", f"syscall(SYS_openat, AT_FDCWD, {file}, O_RDONLY)", []),
                                    ("static program", f"open({file}, O_RDONLY)", ["-static"])):
            program = self.compile("cc", STATIC.replace("RAW", call), ".c", options)
            self.shown(program, code=1)

    def compile(self, compiler, text, suffix, options):
        if not shutil.which(compiler):
            raise Skip(f"{compiler} is not installed")
        source = self.place.file("source" + suffix, text, 0o644)
        program = os.path.join(self.place.dir, "compiled")
        subprocess.run([compiler, *options, source, "-o", program], check=True)
        return program

    def cpp(self):
        program = self.compile("g++", CPP, ".cc", ["-std=c++17"])
        differ("std::filesystem", self.shown(program), CPP_SAYS)

    def program(self, argv, says):
        out = self.shown(*argv)
        if says is None:
            says = "".join(f"{DEV}/ports/1/{name}\n" for name in ("gids/0", "state"))
            out = "".join(sorted(out.splitlines(True)))
        differ(" ".join(argv), out, says)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    for name in ("--lib", "--verbatim", "--paths", "--early"):
        parser.add_argument(name, required=True)
    parser.add_argument("--only")
    args = parser.parse_args()
    report = Report(args.only)
    for who, ordinary in users():
        with Place(args.lib, args.verbatim, ordinary) as place:
            paths = Paths(place, args)
            report.case(f"{who}: every function, files of the view", paths.inside)
            report.case(f"{who}: every function, other files", paths.outside)
            report.case(f"{who}: names that the kernel gives", paths.told)
            report.case(f"{who}: threads, children and a signal handler at once", paths.storm)
            report.case(f"{who}: no view, or none of this user's", paths.inert)
            report.case(f"{who}: calls before the constructor, and of a library that is loaded later", paths.early_calls)
            if ordinary or os.geteuid() != 0:
                report.case(f"{who}: what cannot be reached is not", paths.missed)
                report.case(f"{who}: C++", paths.cpp)
            for name, argv, says in PROGRAMS:
                report.case(f"{who}: {name}", lambda argv=argv, says=says: paths.program(argv, says))
    return report.end()


sys.exit(main())
