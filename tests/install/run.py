#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Usage: run.py --build BUILD [--cc COMPILER]
What is installed from BUILD is complete, in folders of its own, works where it is moved to, and goes away without a rest; the
objects of BUILD can be linked for glibc 2.28; the shells' completion knows the commands and options. Prints TAP."""

import argparse
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
FLOOR = "2.28"
SECONDS = 60
FOREIGN = ("libibverbs1", "libibverbs-dev", "ibverbs-providers", "ibverbs-utils", "rdma-core", "librdmacm1", "librdmacm-dev", "rdmacm-utils",
           "perftest")


def run(*argv, **options):
    """Output and status of a command; its standard error is part of the output."""
    done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, encoding="utf-8",
                          errors="replace", timeout=SECONDS, check=False, **options)
    return done.stdout, done.returncode


def succeed(*argv, **options):
    output, status = run(*argv, **options)
    if status:
        raise AssertionError(f"{' '.join(argv)}: status {status}\n{output}")
    return output


def demand(truth, text):
    if not truth:
        raise AssertionError(text)


class Install:
    """An installation below a folder of the test's own, with the prefix that BUILD has."""

    def __init__(self, args, folder):
        listing = succeed("meson", "introspect", "--buildoptions", args.build)
        option = {entry["name"]: entry["value"] for entry in json.loads(listing)}
        self.build, self.prefix, self.libdir = args.build, option["prefix"], option["libdir"]
        self.destdir = os.path.join(folder, "stage")
        self.root = self.destdir + self.prefix
        self.script = os.path.join(ROOT, "scripts", "install")

    def install(self):
        return succeed(self.script, "--as-built", "--destdir", self.destdir, "--libdir", self.libdir, self.build, self.prefix)

    def uninstall(self):
        return run(self.script, "--uninstall", "--destdir", self.destdir, self.prefix)

    def files(self):
        return sorted(os.path.relpath(os.path.join(folder, name), self.root)
                      for folder, folders, names in os.walk(self.root) for name in names + folders
                      if not os.path.isdir(os.path.join(folder, name)) or os.path.islink(os.path.join(folder, name)))


def layout(install, _args, _folder):
    """Everything is there, and has the rights that files of others need, whatever the umask is."""
    old = os.umask(0o077)
    try:
        install.install()
    finally:
        os.umask(old)
    private = f"{install.libdir}/verbatim"
    wanted = ["bin/verbatim", f"{private}/libibverbs.so.1", f"{private}/libibverbs.so", f"{private}/libverbatim-view.so", f"{private}/libverbatim-mapped.so",
              f"{private}/librdmacm.so.1", f"{private}/librdmacm.so", f"{private}/rsocket/librspreload.so",
              f"{private}/rsocket/librspreload.so.1", f"{private}/rsocket/librspreload.so.1.0.0", f"{private}/pkgconfig/librdmacm.pc",
              "include/verbatim/rdma/rdma_cma.h", f"{private}/pkgconfig/libibverbs.pc", "include/verbatim/infiniband/verbs.h", "include/verbatim/infiniband/verbs/memory.h",
              "share/bash-completion/completions/verbatim", "share/zsh/site-functions/_verbatim"]
    if shutil.which("scdoc"):
        wanted += ["share/man/man1/verbatim.1", "share/man/man7/verbatim.7", "share/verbatim/man/man3/ibv_reg_mr.3",
                   "share/verbatim/man/man3/rdma_connect.3"]
    files = install.files()
    demand(not set(wanted) - set(files), f"not installed: {sorted(set(wanted) - set(files))}")
    headers = set(glob.glob("**/*.h", root_dir=os.path.join(ROOT, "include"), recursive=True))
    lacking = headers - {os.path.relpath(path, "include/verbatim") for path in files if path.startswith("include/")}
    demand(not lacking, f"headers that are not installed: {sorted(lacking)}")
    for path in files:
        full = os.path.join(install.root, path)
        mode = os.stat(full).st_mode & 0o777
        right = 0o755 if path == "bin/verbatim" or ".so" in path else 0o644
        demand(mode == right, f"{path} has mode {mode:o}")
        demand(os.stat(os.path.dirname(full)).st_mode & 0o777 == 0o755, f"the folder of {path} is not open to others")


def nothing_foreign(install, _args, _folder):
    """No file has the place of one of rdma-core's packages or perftest."""
    if not shutil.which("dpkg-query"):
        return "no dpkg here that knows their files"
    foreign = set(run("dpkg-query", "-L", *FOREIGN)[0].splitlines())
    ours = {"/usr/" + path for path in install.files()}
    ours |= {path.replace(f"/{install.libdir}/", "/lib/x86_64-linux-gnu/") for path in ours}
    demand(not ours & foreign, f"also a file of another package: {sorted(ours & foreign)}")
    return None


def moved(install, _args, folder):
    """The tree works in another place, with a space in its name, and uses nothing of the place it was installed to."""
    place = os.path.join(folder, "else where")
    os.rename(install.root, place)
    try:
        program = os.path.join(place, "bin", "verbatim")
        output, status = run(program, "devices")
        demand(status == 0, f"verbatim devices: status {status}\n{output}")
        maps = succeed(program, "run", "--rsockets", "cat", "/proc/self/maps")
        loaded = set(re.findall(r"^\S+ +\S+ +\S+ +\S+ +\d+ +(/.*(?:libibverbs|librdmacm|librspreload|verbatim).*)$", maps, re.M))
        for name in ("libibverbs.so.1", "librdmacm.so.1", "librspreload.so"):
            demand(any(name in path for path in loaded), f"the program has not loaded {name}")
        alone = os.path.join(install.libdir, "verbatim", "rsocket", "librspreload.so.1")
        # The test's driver names the folder of the build, which would be looked into first.
        env = {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"}
        maps = succeed("cat", "/proc/self/maps", env=dict(env, LD_PRELOAD=alone), cwd=place)
        found = set(re.findall(r" (/.*librdmacm.*)$", maps, re.M))
        demand(found and all(path.startswith(os.path.realpath(place)) for path in found), f"librspreload.so alone has {found}")
        outside = [path for path in loaded if not os.path.realpath(path).startswith(os.path.realpath(place))]
        demand(not outside, f"loaded from elsewhere: {outside}")
    finally:
        os.rename(place, install.root)


def compiled(install, args, _folder):
    """pkg-config, compiler, program."""
    if not shutil.which("pkg-config"):
        return "pkg-config is not installed"
    environment = dict(os.environ, CC=args.cc)
    succeed(os.path.join(HERE, "compile"), os.path.join(install.root, "bin", "verbatim"),
            os.path.join(install.root, install.libdir, "verbatim", "pkgconfig"), env=environment)
    return None


def again(install, _args, _folder):
    """Installed over itself: what only the earlier version had goes; the library is replaced and not written to."""
    library = os.path.join(install.root, install.libdir, "verbatim", "libverbatim-view.so")
    number = os.stat(library).st_ino
    former = os.path.join(install.root, "share", "verbatim", "of-an-earlier-version")
    with open(former, "w", encoding="utf-8") as handle:
        handle.write("x")
    with open(os.path.join(install.root, "share", "verbatim", "installed"), "a", encoding="utf-8") as handle:
        handle.write("f share/verbatim/of-an-earlier-version\n")
    before = install.files()
    with open(library, "rb"):
        install.install()
        demand(os.stat(library).st_ino != number, "the library is the same file, which programs have mapped")
    demand(not os.path.exists(former), "a file of the earlier version is still there")
    demand(set(before) - set(install.files()) == {"share/verbatim/of-an-earlier-version"}, "other files went as well")


def removed(install, _args, _folder):
    """Nothing is left but what others have put there."""
    guest = os.path.join(install.root, install.libdir, "verbatim", "not-ours")
    with open(guest, "w", encoding="utf-8") as handle:
        handle.write("x")
    output, status = install.uninstall()
    demand(status == 0, output)
    demand(install.files() == [os.path.relpath(guest, install.root)], f"left: {install.files()}")
    os.unlink(guest)
    os.removedirs(os.path.dirname(guest))
    install.install()
    output, status = install.uninstall()
    demand(status == 0, output)
    demand(not os.path.exists(install.destdir), f"left: {list(os.walk(install.destdir))}")
    output, status = install.uninstall()
    demand(status == 1 and "nothing of verbatim" in output, f"uninstalled twice: status {status}, {output}")


def objects(folder):
    return sorted(os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(".o"))


def connection_objects(build):
    """What librdmacm.so.1 is made of (lib/meson.build): its own, the pure core with its formats, and rsockets."""
    formats = [path for path in objects(f"{build}/src/libvb_wire.a.p") if re.match(r"wire_(cm_|mad\.)", os.path.basename(path))]
    return [*objects(f"{build}/lib/librdmacm.so.1.5.0.p"), *objects(f"{build}/src/libvb_cm.a.p"), *formats, "-Wl,--whole-archive",
            f"{build}/src/rsocket/libvb_rsocket.a", "-Wl,--no-whole-archive"]


def exported(library):
    return {line.split()[-1] for line in succeed("nm", "--dynamic", "--defined-only", library).splitlines()}


def floor(_install, args, folder):
    """The very objects of this build, linked as `make tarball` does, need nothing above the floor."""
    stubs = os.path.join(folder, "stubs")
    check = os.path.join(ROOT, "portable", "check.py")
    succeed(os.path.join(ROOT, "portable", "stubs.py"), stubs, FLOOR, args.cc)
    link = [args.cc, "-L" + stubs, "-Wl,--no-as-needed", f"{stubs}/libpthread.so.0", f"{stubs}/libdl.so.2", "-Wl,--as-needed"]
    rooms = sorted(glob.glob(os.path.join(args.build, "src", "libvb_*.a")))
    library = os.path.join(folder, "libibverbs.so.1")
    succeed(*link, "-shared", "-Wl,-soname,libibverbs.so.1", "-Wl,-z,defs",
            f"-Wl,--version-script,{ROOT}/src/verbs/libibverbs.map", "-Wl,--whole-archive", *rooms, "-Wl,--no-whole-archive", "-o", library)
    view = os.path.join(folder, "libverbatim-view.so")
    succeed(*link, "-shared", "-Wl,-soname,libverbatim-view.so", "-Wl,-z,defs",
            f"-Wl,--version-script,{ROOT}/preload/versions.map", *objects(f"{args.build}/lib/libverbatim-view.so.p"),
            "-o", view)
    manager = os.path.join(folder, "librdmacm.so.1")
    succeed(*link, "-shared", "-Wl,-soname,librdmacm.so.1", "-Wl,-z,defs", f"-Wl,--version-script,{ROOT}/src/rdmacm/librdmacm.map",
            *connection_objects(args.build), library, f"{args.build}/src/libvb_base.a", "-o", manager)
    sockets = os.path.join(folder, "librspreload.so")
    succeed(*link, "-shared", "-Wl,-soname,librspreload.so", "-Wl,-z,defs", *objects(f"{args.build}/lib/rsocket/librspreload.so.p"), manager,
            library, "-o", sockets)
    program = os.path.join(folder, "verbatim")
    succeed(*link, *objects(f"{args.build}/verbatim.p"), library, "-Wl,--start-group", *rooms, "-Wl,--end-group", "-o", program)
    succeed(check, FLOOR, library, manager, sockets, view, program)
    for made, inside in ((library, "lib"), (manager, "lib"), (sockets, "lib/rsocket"), (view, "lib")):
        before, after = exported(os.path.join(args.build, inside, os.path.basename(made))), exported(made)
        demand(before == after, f"{made}: exports differ: {sorted(before ^ after)}")
    output, status = run(program, "devices", env=dict(os.environ, LD_LIBRARY_PATH=folder))
    demand(status == 0, f"linked so, verbatim devices: status {status}\n{output}")
    return stubs


def above_floor(_install, args, folder):
    """What is above the floor is found: by the linker where no earlier version exists, by the check in a plain program."""
    stubs = os.path.join(folder, "stubs")
    source = os.path.join(folder, "above.c")
    with open(source, "w", encoding="utf-8") as handle:
        handle.write("extern unsigned int __rseq_size;\nint main(void)\n{\n\treturn (int)__rseq_size;\n}\n")
    output, status = run(args.cc, "-L" + stubs, source, "-o", os.path.join(folder, "above"))
    demand(status != 0 and "__rseq_size" in output, "a symbol of glibc 2.35 was linked")
    with open(source, "w", encoding="utf-8") as handle:
        handle.write("#include <pthread.h>\nstatic void *f(void *x)\n{\n\treturn x;\n}\nint main(void)\n{\n\tpthread_t t;\n\n"
                     "\treturn pthread_create(&t, 0, f, 0);\n}\n")
    succeed(args.cc, source, "-o", os.path.join(folder, "plain"))
    output, status = run(os.path.join(ROOT, "portable", "check.py"), FLOOR, os.path.join(folder, "plain"))
    demand(status == 1 and "needs GLIBC_2.34" in output, f"pthread_create of glibc 2.34 is not found:\n{output}")


def constructors(_install, args, folder):
    """A program that is linked so runs its constructors once, with its arguments, and its destructors."""
    source, program = os.path.join(folder, "order.c"), os.path.join(folder, "order")
    with open(source, "w", encoding="utf-8") as handle:
        handle.write("#include <stdio.h>\n__attribute__((constructor)) static void first(int argc, char **argv, char **env)\n{\n"
                     "\tprintf(\"constructor %d %s %d\\n\", argc, argv[1], env != 0);\n}\n__attribute__((destructor)) static void last(void)"
                     "\n{\n\tputs(\"destructor\");\n}\nint main(int argc, char **argv)\n{\n\tprintf(\"main %d %s\\n\", argc, argv[1]);\n"
                     "\treturn 0;\n}\n")
    succeed(args.cc, "-L" + os.path.join(folder, "stubs"), source, "-o", program)
    output = succeed(program, "word")
    demand(output.split("\n") == ["constructor 2 word 1", "main 2 word", "destructor", ""], output)


def complete(args, folder, *words):
    """What bash would offer for the last of the words of a command line."""
    script = ('source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}; _verbatim; '
              'printf "%s\\n" "${COMPREPLY[@]}"')
    output = succeed("bash", "--norc", "-c", script, "bash", os.path.join(ROOT, "completion", "verbatim.bash"),
                     os.path.join(args.build, "verbatim"), *words, cwd=folder)
    return set(output.split())


def completion(_install, args, folder):
    """bash: commands, options of a command, values of an option, the program to run and its files."""
    with open(os.path.join(folder, "a-file"), "w", encoding="utf-8"):
        pass
    told = succeed(os.path.join(args.build, "verbatim"), "--help").partition("Commands:")[2]
    commands = set(re.findall(r"^  ([a-z]+)\b", told, re.M))
    demand({"run", "devices"} <= commands, f"verbatim --help names {commands}")
    offered = complete(args, folder, "")
    demand(offered == commands | {"--help", "--version"}, f"commands: {offered}")
    demand(complete(args, folder, "dev") == {"devices"}, "dev")
    demand(complete(args, folder, "devices", "--he") == {"--help"}, "devices --he")
    options = complete(args, folder, "run", "-")
    demand({"--quiet", "--verbose", "--rsockets", "--view=", "-q", "-v"} <= options, f"run -: {options}")
    values = complete(args, folder, "run", "--view", "=", "")
    demand(values == {"preload", "namespace", "none"}, f"run --view=: {values}")
    demand(complete(args, folder, "run", "--view", "=", "na") == {"namespace"}, "run --view=na")
    for words in (("run", "readel"), ("run", "-q", "readel"), ("run", "--view", "=", "none", "--", "readel")):
        demand("readelf" in complete(args, folder, *words), f"{words}: no program")
    for words in (("run", "cat", "a-f"), ("run", "--", "cat", "-n", "a-f"), ("view", "a-f")):
        demand(complete(args, folder, *words) == {"a-file"}, f"{words}: not the file")


def versions(_install, args, _folder):
    """One version everywhere."""
    built = succeed(os.path.join(args.build, "verbatim"), "--version").split()[-1]
    for name, pattern in (("meson.build", r"^  version: '(.*)',"), ("CHANGELOG.md", r"^## (\S+?),?(?: |$)"),
                          ("debian/changelog", r"^verbatim \((.*)\)")):
        with open(os.path.join(ROOT, name), encoding="utf-8") as handle:
            found = re.search(pattern, handle.read(), re.M)
        demand(found and found.group(1) == built, f"{name} has {found and found.group(1)}, the program {built}")


CASES = [layout, nothing_foreign, moved, compiled, again, removed, floor, above_floor, constructors, completion, versions]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True)
    parser.add_argument("--cc", default="cc")
    args = parser.parse_args()
    args.build = os.path.abspath(args.build)
    failed = 0
    with tempfile.TemporaryDirectory(prefix="verbatim-install-test-") as folder:
        os.chmod(folder, 0o755)
        install = Install(args, folder)
        for number, case in enumerate(CASES, 1):
            name = (case.__doc__ or case.__name__).split("\n", maxsplit=1)[0]
            try:
                skip = case(install, args, folder)
                print(f"ok {number} - {case.__name__}: {name}" + (f" # SKIP {skip}" if case in (nothing_foreign, compiled) and skip else ""))
            except (AssertionError, OSError, subprocess.SubprocessError) as fault:
                failed = 1
                print(f"not ok {number} - {case.__name__}: {name}")
                print("\n".join(f"# {line}" for line in str(fault).splitlines()))
            sys.stdout.flush()
    print(f"1..{len(CASES)}")
    return failed


if __name__ == "__main__":
    sys.exit(main())
