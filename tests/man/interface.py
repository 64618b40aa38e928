# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The interface as its sources have it: exported symbols, inlines and macros of the headers, names of manual pages."""

import os
import re


def read(*path):
    with open(os.path.join(*path), encoding="utf-8") as handle:
        return handle.read()


def headers(root):
    folder = os.path.join(root, "include", "infiniband")
    names = ["verbs.h"] + [os.path.join("verbs", name) for name in sorted(os.listdir(os.path.join(folder, "verbs")))]
    names += [os.path.join("..", "rdma", "rdma_verbs.h")]
    return "\n".join(read(folder, name) for name in names if name.endswith(".h"))


def exported(root):
    """Functions of both libraries that programs call; one that stands behind an inline (_ibv_x) is ibv_x."""
    text = "".join(re.sub(r"/\*.*?\*/", "", read(root, "src", *path), flags=re.S)
                   for path in (("verbs", "libibverbs.map"), ("rdmacm", "librdmacm.map")))
    nodes = re.findall(r"^(?:IBVERBS|RDMACM)_\d\S* \{(.*?)^\}", text, re.S | re.M)
    return sorted({name.lstrip("_") for node in nodes for name in re.findall(r"^\s+(\w+);", node, re.M)})


def page_of(name):
    """rsocket(7) explains the functions of rsockets together, so their pages are in that section."""
    return f"{name}.{3 if name.startswith(('ibv_', 'rdma_', 'mult_', 'mbps_')) else 7}"


def inlines(root):
    """Inline functions that programs call."""
    found = re.findall(r"^static inline [^;{}]*?\b((?:ibv|rdma)_\w+)\(", headers(root), re.M)
    return sorted(set(found))


def macros(root):
    """Functions that a macro of the same name hides: the macro's types are those that the page shows."""
    return sorted(set(re.findall(r"^#define (ibv_\w+)\(", headers(root), re.M)))


def promised(path):
    """(page, reason of its absence or "") of the list of names."""
    for line in read(path).splitlines():
        if line and not line.startswith("#"):
            name, _, reason = line.partition(" absent: ")
            yield name, reason


def synopsis_program(root, synopsis):
    """A program that declares again what the headers declared: the compiler compares the types."""
    includes = re.findall(r"^#include .*$", synopsis, re.M)
    rest = re.sub(r"^#include .*$", "", synopsis, flags=re.M)
    hidden = "\n".join(f"#undef {name}\n#define {name} shown_{name}" for name in macros(root))
    return "\n".join(["#include <infiniband/verbs.h>", *includes, hidden, rest, ""])


def variables(root):
    """Environment variables of ours and of rdma-core's log that the sources name in a string of their own."""
    found = set()
    for top in ("src", "tools", "preload"):
        for folder, _, names in os.walk(os.path.join(root, top)):
            for name in names:
                if name.endswith((".c", ".h")):
                    found |= set(re.findall(r'"((?:VERBATIM|VERBS)_[A-Z_]+)["=]', read(folder, name)))
    return found
