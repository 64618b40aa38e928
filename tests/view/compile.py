# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Programs that a test compiles: of kinds that no package has ready."""

import os
import shutil
import subprocess

from place import Failure, Skip

INCLUDE = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "include")


def compile_c(place, name, text, *options, compiler="cc"):
    """Compiles a program or a library into the test's folder; returns its path."""
    if not shutil.which(compiler):
        raise Skip(f"{compiler} is not installed")
    out = os.path.join(place.dir, name)
    os.makedirs(os.path.dirname(out), exist_ok=True)
    source = place.file(name + (".cc" if compiler == "g++" else ".c"), text, 0o644)
    done = subprocess.run([compiler, "-I" + INCLUDE, source, *options, "-o", out], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        if "cannot find -l" in done.stderr or "cannot find lib" in done.stderr:
            raise Skip(f"{compiler} lacks a library: {done.stderr.splitlines()[0]}")
        raise Failure(f"{compiler} {' '.join(options)}: {done.stderr}")
    return out


# Prints how often a file can be read through the C library: its first line, or "nothing".
READER = r"""
#include <stdio.h>
int main(int argc, char **argv)
{
    char line[128] = "nothing\n";
    FILE *f = argc > 1 ? fopen(argv[1], "r") : NULL;
    if (f && !fgets(line, sizeof(line), f))
        line[0] = 0;
    fputs(line, stdout);
    return 0;
}
"""

# Prints the name of the first device.
LISTER = r"""
#include <stdio.h>
#include <infiniband/verbs.h>
int main(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    printf("%s\n", list && list[0] ? ibv_get_device_name(list[0]) : "no device");
    ibv_free_device_list(list);
    return 0;
}
"""

# Another librdmacm, and a program that tells which it has.
OTHER_CM = """
const char *rdma_event_str(int event);
const char *rdma_event_str(int event)
{
    (void)event;
    return "another library";
}
"""
OTHER_CM_VERSIONS = "RDMACM_1.0 { global: rdma_event_str; local: *; };\n"
EVENT_NAME = """
#include <stdio.h>
#include <rdma/rdma_cma.h>
int main(void)
{
    puts(rdma_event_str(RDMA_CM_EVENT_ESTABLISHED));
    return 0;
}
"""

# Another libibverbs, which has no device.
OTHER_LIBRARY = r"""
#include <stddef.h>
void **ibv_get_device_list(int *count);
void ibv_free_device_list(void **list);
const char *ibv_get_device_name(void *device);
static void *none[1];
void **ibv_get_device_list(int *count) { if (count) *count = 0; return none; }
void ibv_free_device_list(void **list) { (void)list; }
const char *ibv_get_device_name(void *device) { (void)device; return "of the other library"; }
"""
OTHER_VERSIONS = "IBVERBS_1.0 { global: none_of_these; };\nIBVERBS_1.1 { global: ibv_*; local: *; } IBVERBS_1.0;\n"

# A note as the Go linker writes it (cmd/link, .note.go.buildid).
GO_NOTE = r"""
__asm__(".section .note.go.buildid,\"a\",@note\n.long 4, 4, 4\n.ascii \"Go\\0\\0\"\n.long 0\n.previous");
"""


def elf_head(bits, machine):
    """The head of a program file of another kind, of which nothing can be run."""
    return b"\x7fELF" + bytes([1 if bits == 32 else 2, 1, 1]) + bytes(9) + (2).to_bytes(2, "little") + machine.to_bytes(2, "little") + bytes(100)
