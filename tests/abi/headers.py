#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The public headers compile without a warning: C and C++, old and new, with and without others.

usage: headers.py CC WORKDIR
"""
import os
import shutil
import subprocess
import sys

from common import INCLUDE, fail, need

NAMES = [f"infiniband/{name}" for name in ("verbs", "opcode", "sa", "ib", "tm_types", "ib_user_ioctl_verbs")]
NAMES += [f"rdma/{name}" for name in ("rdma_cma", "rdma_verbs", "rsocket")]
ALL = "".join(f"#include <{name}.h>\n" for name in NAMES)
EACH = [f"#include <{name}.h>\n" for name in NAMES + ["infiniband/verbs_api"]]
WARN = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]

# Headers of others that sit on ours; the system's are searched after ours.
OTHERS = ("infiniband/mlx5dv.h", "infiniband/mlx4dv.h", "infiniband/efadv.h", "infiniband/manadv.h",
          "rdma/ib_user_ioctl_verbs.h")


def compiles(compiler, workdir, language, options, text):
    source = os.path.join(workdir, "headers_source")
    with open(source, "w", encoding="ascii") as file:
        file.write(text + "int verbatim_headers;\n")
    command = [compiler, "-x", language, "-I" + INCLUDE, "-fsyntax-only", *options, source]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    os.unlink(source)
    if done.returncode:
        fail(f"{' '.join(command)}\n{text}{done.stderr}")
    return 1


def main():
    cc, workdir = sys.argv[1:3]
    need(cc)
    count = 0
    for text in EACH + [ALL]:
        for std in ("gnu11", "c11", "gnu17"):
            count += compiles(cc, workdir, "c", ["-std=" + std, "-D_GNU_SOURCE"] + WARN, text)
    cxx = next((name for name in ("g++", "clang++") if shutil.which(name)), None)
    if cxx:
        for std in ("c++11", "c++17", "c++20"):
            count += compiles(cxx, workdir, "c++", ["-std=" + std] + WARN, ALL)
    for other in OTHERS:
        if os.path.exists("/usr/include/" + other):
            for text in (ALL + f"#include <{other}>\n", f"#include <{other}>\n" + ALL):
                count += compiles(cc, workdir, "c", ["-Wall", "-Werror"], text)
    obsolete = "#include <infiniband/arch.h>\n#include <infiniband/sa-kern-abi.h>\n"
    count += compiles(cc, workdir, "c", ["-Wno-cpp"], obsolete)
    print(f"{count} compilations" + ("" if cxx else "; no C++ compiler is installed"))


main()
