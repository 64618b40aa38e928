#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Usage: run.py --lib DIR [--cc COMPILER] [--verbatim PROGRAM] [PAGE...]
The manual pages say what is true: each exported function and inline has one, each page of the interface is there, groff
finds no fault, prototypes agree with the headers, what a page refers to exists, and each example compiles without a warning
and does something on a machine that has only the loopback device. Each command of PROGRAM has a page with the options that its
--help has, and verbatim(7) names the environment variables that the sources read. Prints TAP. With names of pages: only these."""

import argparse
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True

import commands  # noqa: E402
import interface  # noqa: E402
from page import Page  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
MAN = os.path.join(ROOT, "man")
EXAMPLE_SECONDS = 60
JOBS = 2


def skip(reason):
    print(reason, file=sys.stderr)
    sys.exit(77)


def enter_namespace():
    """Starts this program again where the loopback device is the only one; stays here where that is refused."""
    if os.environ.get("VB_MAN_NAMESPACE"):
        return
    os.environ["VB_MAN_NAMESPACE"] = "1"
    ip = shutil.which("ip") or "/usr/sbin/ip"
    flags = ["--net"] if os.geteuid() == 0 else ["--map-root-user", "--net"]
    up = ["unshare", *flags, "--", "sh", "-c", '"$0" link set lo up && exec "$@"', ip]
    if subprocess.run([*up, "true"], capture_output=True, check=False).returncode == 0:
        os.execvp("unshare", [*up, sys.executable, *sys.argv])


class Report:
    """TAP, one line a case."""

    def __init__(self):
        self.count = 0
        self.failed = 0

    def case(self, name, faults):
        self.count += 1
        self.failed += bool(faults)
        print(f"{'not ok' if faults else 'ok'} {self.count} - {name}")
        for fault in faults:
            print(f"# {fault}")
        sys.stdout.flush()

    def done(self):
        print(f"1..{self.count}")
        return 1 if self.failed else 0


def listed():
    with open(os.path.join(MAN, "pages"), encoding="utf-8") as handle:
        return [line.strip() for line in handle if line.strip() and not line.startswith("#")]


def check_lists(report, pages, present):
    """present: every name that has a page, and the alias' target or None."""
    files = {name[: -len(".scd")] for name in os.listdir(MAN) if name.endswith(".scd")}
    report.case("every source is in the list of pages", sorted(files - set(pages)))
    for name, reason in interface.promised(os.path.join(HERE, "names.txt")):
        if reason:
            report.case(f"{name}: no page: {reason}", ["there is one"] if name in present else [])
    wanted = {name: "listed" for name in pages}
    wanted.update({name: "a name of the interface" for name, why in
                   interface.promised(os.path.join(HERE, "names.txt")) if not why})
    wanted.update({interface.page_of(name): "exported" for name in interface.exported(ROOT)})
    wanted.update({interface.page_of(name): "an inline of the headers" for name in interface.inlines(ROOT)})
    for name, why in sorted(wanted.items()):
        report.case(f"{name} exists", [] if name in present else [f"it is {why} and has no page"])


def check_layout(report, page, folder):
    """groff's own judgement of the rendered page, and that the example reads as it is compiled. Lines of table cells that cannot be
    filled to their width are none of its business."""
    made = os.path.join(folder, "man" + page.section, page.name)
    run = subprocess.run(["groff", "-t", "-man", "-ww", "-Wbreak", "-Tascii", "-P-cbou", made], capture_output=True, encoding="utf-8",
                         errors="replace", check=False)
    faults = run.stderr.splitlines()
    shown = {line.strip() for line in run.stdout.splitlines()}
    faults += [f"shown differently: {line}" for line in page.example.splitlines() if line.strip() not in shown]
    report.case(f"{page.name}: layout", faults)


def check_prototypes(report, page, folder, args):
    """Every name of the page is declared in its SYNOPSIS, as the headers have it."""
    source = os.path.join(folder, page.name + ".synopsis.c")
    with open(source, "w", encoding="utf-8") as handle:
        handle.write(interface.synopsis_program(ROOT, page.synopsis))
    run = subprocess.run([args.cc, "-std=gnu11", "-D_GNU_SOURCE", "-fsyntax-only", "-I", os.path.join(ROOT, "include"), source],
                         capture_output=True, encoding="utf-8", check=False)
    faults = [line for line in run.stderr.splitlines() if "error:" in line]
    faults += [f"{name}: no prototype in SYNOPSIS" for name in page.names
               if not re.search(r"\b" + re.escape(name) + r"\(", page.synopsis)]
    report.case(f"{page.name}: prototypes", faults)


def check_references(report, page, present):
    known = {name.rsplit(".", 1)[0] for name in present}
    faults = [f"refers to {name}({section}), which does not exist" for name, section in page.references()
              if f"{name}.{section}" not in present]
    faults += [f"speaks of {name}(), which does not exist" for name in page.calls() if name not in known]
    report.case(f"{page.name}: references", sorted(faults))


def try_example(page, folder, args):
    """Compiles and runs; returns what is wrong."""
    source = os.path.join(folder, page.name + ".c")
    program = source[:-2]
    with open(source, "w", encoding="utf-8") as handle:
        handle.write(page.example)
    libraries = ["-lrdmacm", "-libverbs"] if "<rdma/" in page.example else ["-libverbs"]
    build = subprocess.run(
        [args.cc, "-std=gnu11", "-D_GNU_SOURCE", "-O0", "-Wall", "-Wextra", "-Werror", "-I", os.path.join(ROOT, "include"), source,
         "-o", program, "-L", args.lib, *libraries, "-lpthread"], capture_output=True, encoding="utf-8", check=False)
    if build.returncode != 0:
        return build.stderr.splitlines()[:8]
    env = dict(os.environ, LD_LIBRARY_PATH=args.lib)
    try:
        run = subprocess.run([program], capture_output=True, encoding="utf-8", errors="replace", env=env, cwd=folder,
                             stdin=subprocess.DEVNULL, timeout=EXAMPLE_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return [f"did not end within {EXAMPLE_SECONDS} s"]
    told = run.stdout.splitlines()[-5:] + run.stderr.splitlines()[-5:]
    if run.returncode != 0:
        return [f"status {run.returncode}", *told]
    return [] if run.stdout.strip() else ["prints nothing", *told]


def of_functions(page):
    """rsocket(7) has the functions of rsockets."""
    return page.section == "3" or page.name == "rsocket.7"


def check_pages(report, pages, present, folder, args):
    for page in pages:
        report.case(f"{page.name}: sections", list(page.faults()))
        check_layout(report, page, folder)
        check_references(report, page, present)
        if of_functions(page):
            check_prototypes(report, page, folder, args)
    with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
        with_example = [page for page in pages if page.example and of_functions(page)]
        for page, faults in zip(with_example, pool.map(lambda page: try_example(page, folder, args), with_example)):
            report.case(f"{page.name}: the example compiles and runs", faults)


def check_program(report, pages, program):
    """The pages of the commands against the program, and the variables against the sources."""
    by_name = {page.name: page for page in pages}
    for command in commands.listed(program):
        page = by_name.get(f"verbatim-{command}.1")
        report.case(f"verbatim {command}: its page", list(commands.faults(program, command, page, by_name["verbatim.1"])))
    explained, read = by_name["verbatim.7"].variables(), interface.variables(ROOT)
    faults = [f"{name} is read by the sources and not explained" for name in sorted(read - set(explained))]
    faults += [f"{name} is explained, and nothing reads it" for name in sorted(set(explained) - read)]
    faults += [f"{name} is explained twice" for name in sorted({name for name in explained if explained.count(name) > 1})]
    report.case("verbatim.7: environment variables", faults)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lib", required=True)
    parser.add_argument("--cc", default="cc")
    parser.add_argument("--verbatim")
    parser.add_argument("pages", nargs="*")
    args = parser.parse_args()
    args.lib = os.path.abspath(args.lib)
    for program in ("scdoc", "groff"):
        if not shutil.which(program):
            skip(f"{program} is not installed")
    enter_namespace()
    report = Report()
    sys.path.insert(0, MAN)
    from render import render  # pylint: disable=import-outside-toplevel,import-error
    with tempfile.TemporaryDirectory(prefix="verbatim-man-") as folder:
        sources = [os.path.join(MAN, name + ".scd") for name in listed()]
        sources = [name for name in sources if os.path.exists(name)]
        present = render(folder, "scdoc", sources)
        pages = [Page(source) for source in sources]
        if args.pages:
            pages = [page for page in pages if any(wanted in page.name for wanted in args.pages)]
        else:
            check_lists(report, listed(), present)
            if args.verbatim:
                check_program(report, pages, os.path.abspath(args.verbatim))
        check_pages(report, pages, present, folder, args)
    return report.done()


if __name__ == "__main__":
    sys.exit(main())
