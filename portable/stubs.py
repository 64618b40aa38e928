#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Usage: portable/stubs.py OUTPUT MAJOR.MINOR CC...
Writes into OUTPUT what a program is linked with so that it runs on that release of glibc and all later ones, whatever release
this machine has:

libc.so.6        a library without code that has each symbol of this machine's libc.so.6 with the highest version that is not above
                 the floor, and only that (ld-linux-x86-64.so.2: the same of the loader, which has __tls_get_addr). The linker so binds pthread_create@GLIBC_2.2.5 and not the one of glibc 2.34, and
                 what is only in later releases is an undefined symbol, which ends the link.
libpthread.so.0, libdl.so.2   empty. The functions moved into libc.so.6 in glibc 2.34; before, they are in these, which a program
                 must therefore need. Later releases still have both names.
libfloor.a       floor_*.c and start.c compiled: functions that headers of today call by names that the floor has not, and the start of
                 programs.
libc.so          the linker script that puts them in the place of the C library.
"""

import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
STUBS = (("libc.so.6", 1000), ("ld-linux-x86-64.so.2", 1))  # and how many symbols they have at the least
PARTS = ("floor_fstat", "floor_paths", "floor_text", "start")  # of libfloor.a
REPLACED = {"__libc_start_main"}  # of libfloor.a, which uses the one of the library
MOVED = ("libpthread.so.0", "libdl.so.2")
# A line of readelf: value, size, type, binding, visibility, section, name@version or name@@version.
SYMBOL = re.compile(r"^\s*\d+: ([0-9a-f]+)\s+(\d+|0x[0-9a-f]+) (FUNC|OBJECT|NOTYPE|TLS|IFUNC)\s+(GLOBAL|WEAK|UNIQUE)\s+DEFAULT\s+"
                    r"(\w+) (\w+)@@?GLIBC_(\d+(?:\.\d+)+)$", re.M)


def number(version):
    return tuple(map(int, version.split(".")))


def run(*argv):
    return subprocess.run(argv, check=True, stdout=subprocess.PIPE, encoding="utf-8").stdout


def symbols(library, floor):
    """name -> (version, value, size, type, binding), the version the highest that the floor has."""
    chosen = {}
    for value, size, kind, binding, section, name, version in SYMBOL.findall(run("readelf", "--wide", "--dyn-syms", library)):
        if section in ("UND", "ABS") or number(version) > number(floor) or kind == "TLS":
            continue
        if name not in chosen or number(version) > number(chosen[name][0]):
            chosen[name] = (version, int(value, 16), int(size, 0), kind, binding)
    return chosen


def assembly(chosen):
    """Data keeps its size and stands together where it has several names: the linker copies it into programs."""
    lines, places = [], {}
    for index, (name, (version, value, size, kind, binding)) in enumerate(sorted(chosen.items())):
        label = f"stub_{index}"
        data = kind in ("OBJECT", "NOTYPE")
        lines += [f".{'weak' if binding == 'WEAK' else 'globl'} {label}", f".type {label}, @{'object' if data else 'function'}",
                  f".symver {label}, {name}{'@' if name in REPLACED else '@@@'}GLIBC_{version}"]
        if data:
            lines.append(f".size {label}, {size}")
            places.setdefault(value, []).append((label, size))
        else:
            lines += [".text", f"{label}: ret", ".data"]
    for place in places.values():
        lines += [".data", ".balign 32", *(f"{label}:" for label, _ in place), f".zero {max(max(size for _, size in place), 1)}"]
    return "\n".join([*lines, '.section .note.GNU-stack,"",@progbits', ""])


def write(path, text):
    with open(path, "w", encoding="utf-8") as handle:
        handle.write(text)


def shared(compiler, output, name, *more):
    run(*compiler, "-shared", "-nostdlib", f"-Wl,-soname,{name}", *more, "-o", os.path.join(output, name))


def stub(compiler, output, name, floor, least):
    chosen = symbols(run(*compiler, f"-print-file-name={name}").strip(), floor)
    if len(chosen) < least:
        sys.exit(f"stubs: only {len(chosen)} symbols found in {name}")
    base = os.path.join(output, name.split(".")[0])
    write(f"{base}.s", assembly(chosen))
    versions = sorted({version for version, *_ in chosen.values()}, key=number)
    write(f"{base}.map", "".join(f"GLIBC_{version} {{}};\n" for version in versions))
    shared(compiler, output, name, f"-Wl,--version-script,{base}.map", f"{base}.s")


def main():
    output, floor, *compiler = sys.argv[1:]
    output = os.path.abspath(output)
    os.makedirs(output, exist_ok=True)
    for name, least in STUBS:
        stub(compiler, output, name, floor, least)
    write(os.path.join(output, "empty.c"), "")
    for name in MOVED:
        shared(compiler, output, name, f"{output}/empty.c")
    if os.path.exists(f"{output}/libfloor.a"):
        os.remove(f"{output}/libfloor.a")
    for name in PARTS:
        run(*compiler, "-std=gnu11", "-O2", "-fPIC", "-fvisibility=hidden", "-Wall", "-Wextra", "-c", os.path.join(HERE, f"{name}.c"),
            "-o", f"{output}/{name}.o")
        run("ar", "rcsD", f"{output}/libfloor.a", f"{output}/{name}.o")
    rest = run(*compiler, "-print-file-name=libc_nonshared.a").strip()
    write(os.path.join(output, "libc.so"),
          f"GROUP ( {output}/libc.so.6 {output}/libfloor.a {rest} AS_NEEDED ( {output}/ld-linux-x86-64.so.2 ) )\n")


main()
