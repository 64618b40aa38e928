#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Usage: run.py --lib DIR --verbatim PROGRAM --early LIBRARY [--only REGEX]
Promise: `verbatim run` makes any program use this library and see the files of the devices: whatever is preloaded already, wherever
the library lies, with sanitizers, scripts, library paths and copies of the program's own. It leaves process id, exit status and
descriptors as they are, and says in one line what of a program it cannot reach. Prints one TAP line a case; exits 1 when one failed."""

import os
import re
import shutil
import signal
import struct
import sys

sys.dont_write_bytecode = True

from compile import (EVENT_NAME, GO_NOTE, LISTER, OTHER_CM, OTHER_CM_VERSIONS, OTHER_LIBRARY, OTHER_VERSIONS, READER,  # noqa: E402
                     compile_c, elf_head)
from place import Failure, Skip, free_port, run_cases  # noqa: E402

PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
FIRST = "for d in /sys/class/infiniband/*; do test -r $d/ports/1/state && basename $d; done | head -n 1"
BY_NAME = """
import ctypes, sys
lib = ctypes.CDLL(sys.argv[1])
lib.ibv_get_device_list.restype = ctypes.POINTER(ctypes.c_void_p)
lib.ibv_get_device_name.restype = ctypes.c_char_p
lib.ibv_get_device_name.argtypes = [ctypes.c_void_p]
devices = lib.ibv_get_device_list(None)
print(lib.ibv_get_device_name(devices[0]).decode() if devices[0] else "no device")
"""


ECHOED = 1 << 20  # bytes
SOCKET = """
import os, socket, sys, time
port, size = int(sys.argv[2]), int(sys.argv[3])

def read(s):
    data = b""
    while len(data) < size:
        more = s.recv(size - len(data))
        if not more:
            break
        data += more
    return data

if sys.argv[1] == "server":
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind(("127.0.0.1", port))
    s.listen(1)
    c = s.accept()[0]
    c.sendall(read(c))
    c.recv(1)
else:
    for i in range(200):
        try:
            s = socket.create_connection(("127.0.0.1", port))
            break
        except OSError:
            time.sleep(0.05)
    data = os.urandom(size)
    s.sendall(data)
    print("sent back" if read(s) == data else "other data")
    s.close()
"""


def expect(what, got, want):
    if got != want:
        raise Failure(f"{what}: {got!r}, expected {want!r}")


def expect_device(what, text):
    if not re.match(r"vb_\S+\n", text):
        raise Failure(f"{what}: {text!r}, expected a device of this library")


def preloaded(lib, *more):
    return ":".join(os.path.join(lib, name) for name in ("libibverbs.so.1", "librdmacm.so.1", *more, "libverbatim-view.so"))


class Run:
    def __init__(self, place, args):
        self.place = place
        self.run = place.verbatim_run
        self.early = place.program(os.path.abspath(args.early))
        self.file = os.path.join("/sys/class/infiniband", self.run("sh", "-c", FIRST)[0].strip(), "ports/1/state")

    def setting(self, name, *options, env=None):
        lines = self.run(*options, "env", env=env)[0].splitlines()
        return next((line.partition("=")[2] for line in lines if line.startswith(name + "=")), None)

    def shown(self):
        out, err = self.run("cat", self.file)
        expect("the state of the port", out, "4: ACTIVE\n")
        expect("standard error", err, "")
        expect_device("ibv_devices", self.run("ibv_devices")[0].split("\n", 2)[2].split()[0] + "\n")

    def statuses(self):
        expect("true", self.run("true"), ("", ""))
        self.run("false", code=1)
        self.run("--", "sh", "-c", "exit 7", code=7)
        self.run("sh", "-c", "kill -9 $$", code=-signal.SIGKILL)
        for argv, code in ((["/none"], 127), (["none-of-that-name"], 127), ([""], 127), (["/etc/passwd"], 126), (["/etc"], 126),
                           ([self.place.file("plain", "#!/none\n")], 127), ([self.place.file("odd", elf_head(64, 0xbeef))], 126),
                           (["/etc/passwd/x"], 126)):
            out, err = self.run("-q", *argv, code=code)
            if out or not re.fullmatch(r"verbatim run: .*\n", err):
                raise Failure(f"{argv}: {err}")
        self.run(code=64)
        self.run("--view=other", "true", code=64)
        expect("a script without #!", self.run(self.place.file("bare", "exit 5\n"), code=5), ("", ""))

    def process(self):
        """The same process, with the descriptors that it was given."""
        process = self.place.start([self.place.verbatim, "run", "sh", "-c", "echo $$; read -r word; echo $word; ls /proc/self/fd"],
                                   stdin=-1)
        out, _ = process.communicate("given\n", timeout=60)
        if not self.place.ordinary:
            expect("process id", out.split()[0], str(process.pid))
        expect("standard input", out.split()[1], "given")
        expect("descriptors", out.split()[2:], ["0", "1", "2", "3"])
        children = self.run(PYTHON, "-c", "import os\ntry:\n    print(os.waitpid(-1, 0))\nexcept ChildProcessError:\n    print('none')")[0]
        expect("children that the program finds", children, "none\n")

    def preloads(self):
        mine = preloaded(self.place.lib)
        expect("LD_PRELOAD", self.setting("LD_PRELOAD"), mine)
        expect("LD_PRELOAD with another", self.setting("LD_PRELOAD", env={"LD_PRELOAD": f" {self.early}  "}), f"{self.early}:{mine}")
        expect("LD_PRELOAD with two others", self.setting("LD_PRELOAD", env={"LD_PRELOAD": f"{self.early}:libc.so.6"}),
               f"{self.early}:libc.so.6:{mine}")
        out = self.run("true", env={"LD_PRELOAD": self.early, "EARLY_FILE": self.file})[0]
        if not out.endswith("constructor: 4: ACTIVE\n"):
            raise Failure(f"a preloaded library of the program's: {out}")
        expect("LD_LIBRARY_PATH", self.setting("LD_LIBRARY_PATH", env={"LD_LIBRARY_PATH": "/a:/b"}), f"{self.place.lib}:/a:/b")
        expect("ASAN_OPTIONS", self.setting("ASAN_OPTIONS", env={"ASAN_OPTIONS": "exitcode=66"}), "exitcode=66:verify_asan_link_order=0")
        _, verbatim = self.place.copy_tree("second")
        nested = [self.place.verbatim, "run", verbatim, "run", "env"]
        lib = os.path.join(os.path.dirname(verbatim), "lib")
        out = self.place.run(*nested)[0]
        for setting in (f"LD_PRELOAD={preloaded(lib)}", f"LD_LIBRARY_PATH={lib}:{self.place.lib}"):
            if setting not in out.splitlines():
                raise Failure(f"two versions, one in the other: no {setting}\n{out}")

    def options(self):
        expect("--view=none", self.setting("VERBATIM_VIEW", "--view=none"), None)
        expect("--view=none, an outer view", self.setting("VERBATIM_VIEW", "--view=none", env={"VERBATIM_VIEW": "/none"}), None)
        expect("--view=none", self.run("--view=none", "cat", self.file, code=1)[0], "")
        expect("VERBATIM_REPORT", self.setting("VERBATIM_REPORT"), "1")
        expect("-q", self.setting("VERBATIM_REPORT", "-q", env={"VERBATIM_REPORT": "1"}), None)
        out, err = self.run("-v", "true")
        for name in ("VERBATIM_VIEW", "LD_PRELOAD", "LD_LIBRARY_PATH"):
            if not re.search(rf"^verbatim run: {name}=/", err, re.M):
                raise Failure(f"-v does not say {name}: {out}{err}")
        if "--view" not in self.run("--help")[0]:
            raise Failure("--help")

    def mapped(self):
        """--mapped adds one library, which an inner run takes out and a tree without it is told of."""
        more = preloaded(self.place.lib, "libverbatim-mapped.so")
        expect("--mapped", self.setting("LD_PRELOAD", "--mapped"), more)
        expect("--mapped outside", self.setting("LD_PRELOAD", env={"LD_PRELOAD": more}), preloaded(self.place.lib))
        out, err = self.run("--mapped", PYTHON, "-c", "b = bytearray(10 ** 7); print(open('/proc/self/maps').read().count('memfd:verbatim-mapped') > 0)")
        expect("a block", (out, err), ("True\n", ""))
        lib, verbatim = self.place.copy_tree("without-mapped")
        os.unlink(os.path.join(lib, "libverbatim-mapped.so"))
        out, err = self.place.run(verbatim, "run", "--mapped", "true", code=1)
        expect("without the library", (out, err), ("", f"verbatim run: libverbatim-mapped.so is not in {lib}\n"))

    def rsockets(self):
        """--rsockets adds one library, which goes where an inner run does not ask for it."""
        more = preloaded(self.place.lib, "rsocket/librspreload.so")
        expect("--rsockets", self.setting("LD_PRELOAD", "--rsockets"), more)
        expect("--rsockets outside", self.setting("LD_PRELOAD", env={"LD_PRELOAD": more}), preloaded(self.place.lib))
        lib, verbatim = self.place.copy_tree("without-rsockets")
        os.unlink(os.path.join(lib, "rsocket", "librspreload.so"))
        out, err = self.place.run(verbatim, "run", "--rsockets", "true", code=1)
        expect("without the library", (out, err), ("", f"verbatim run: rsocket/librspreload.so is not in {lib}\n"))
        for options, moved in ((["--rsockets"], True), ([], False)):
            counted = self.echoed(*options)
            if moved != (counted >= 2 * ECHOED) or (not moved and counted):
                raise Failure(f"{options}: {counted} bytes passed through queue pairs, of {ECHOED} that were sent and came back")

    def echoed(self, *options):
        """A server and a client of sockets; returns how many bytes the devices' counters have of it."""
        port = free_port()
        program = self.place.file("echo.py", SOCKET)
        script = f"{PYTHON} {program} server {port} {ECHOED} & {PYTHON} {program} client {port} {ECHOED} || exit 1; wait $! || exit 2; " \
                 "cat /sys/class/infiniband/*/ports/1/counters/port_xmit_data"
        out = self.run(*options, "bash", "-c", script)[0].splitlines()
        self.place.wait_gone()
        expect(f"{options}: what the client got", out[0], "sent back")
        return 4 * sum(int(words) for words in out[1:])

    def connections(self):
        """rping, whose data is checked by itself, on our librdmacm in both processes."""
        if not shutil.which("rping"):
            raise Skip("rping is not installed")
        port = str(free_port())
        words = ["-a", "127.0.0.1", "-p", port, "-C", "20", "-S", "4096", "-V"]
        server = self.place.start([self.place.verbatim, "run", "rping", "-s", *words], stdin=-1)
        client = ["sh", "-c", f"for i in $(seq 100); do rping -c {' '.join(words)} && exit 0; sleep 0.05; done; exit 1"]
        self.run(*client, code=0)
        server.communicate(timeout=60)
        expect("status of the server", server.returncode, 0)
        maps = self.run("cat", "/proc/self/maps")[0]
        expect("librdmacm in a program", {line.split()[-1] for line in maps.splitlines() if "librdmacm" in line},
               {os.path.realpath(os.path.join(self.place.lib, "librdmacm.so.1"))})

    def odd_folder(self):
        """Spaces, colons and dollars are separators to the loader, which knows no quotes."""
        for name in ("a b", "c:d;e", "$LIB"):
            _, verbatim = self.place.copy_tree(name)
            out, err = self.place.run(verbatim, "run", "cat", self.file)
            expect(f"in {name}", (out, err), ("4: ACTIVE\n", ""))
            expect_device(f"in {name}", self.place.run(verbatim, "run", PYTHON, "-c", BY_NAME, "libibverbs.so")[0])
            expect_device(f"in {name}, without a view", self.place.run(verbatim, "run", "--view=none", PYTHON, "-c", BY_NAME,
                                                                     "libibverbs.so.1")[0])

    def by_name(self):
        for name in ("libibverbs.so", "libibverbs.so.1"):
            expect_device(f"dlopen of {name}", self.run(PYTHON, "-c", BY_NAME, name)[0])

    def counters(self):
        """What was sent is counted when its file is opened, by each way of opening it."""
        folder = os.path.dirname(self.file) + "/counters"
        device = self.file.split("/")[4]
        for reader in ("cat $0/port_xmit_data", "read -r n < $0/port_xmit_data; echo $n",
                       f"{PYTHON} -c 'print(open(\"'$0'/port_xmit_data\").read().strip())'"):
            pingpong = f"ibv_rc_pingpong -d {device} -g 0 -n 100 -s 4096 -p {free_port()}"
            listens = f"grep -qE ':{int(pingpong.split()[-1]):04X} [0-9A-F]*:0000 0A' /proc/net/tcp /proc/net/tcp6"
            script = f"{pingpong} >&2 & until {listens}; do kill -0 $! || exit 1; sleep 0.01; done; " \
                     f"{pingpong} 127.0.0.1 >&2; wait; {reader}"
            words = self.run("bash", "-c", script, folder)[0]
            # A busy machine may have something sent twice.
            if not 204800 <= int(words) < 2 * 204800:
                raise Failure(f"words sent by two processes, 100 messages of 4096 bytes each: {words}")
            self.place.wait_gone()

    def scripts(self):
        child = self.place.file("child", f"#!/bin/sh\ncat {self.file}\n")
        script = self.place.file("script", f"#! /usr/bin/env -S sh -u\n{child} && sh -c '{child}'\n")
        expect("children of scripts", self.run(script), ("4: ACTIVE\n4: ACTIVE\n", ""))
        loop = self.place.file("loop", f"#!{self.place.dir}/loop\n")
        self.run(loop, code=126)

    def sanitizer(self, compiler, *options):
        program = compile_c(self.place, "sanitized", READER, "-g", *options, compiler=compiler)
        script = self.place.file("sanitized.sh", f"#!/bin/sh\nexec {program} \"$@\"\n")
        for argv in ([program], [script]):
            expect(f"{compiler} {' '.join(options)}", self.run(*argv, self.file), ("4: ACTIVE\n", ""))
        program = compile_c(self.place, "listing", LISTER, "-g", *options, f"-L{self.place.lib}", "-libverbs", compiler=compiler)
        expect_device(f"{compiler} {' '.join(options)}", self.run(program, env={"ASAN_OPTIONS": "detect_leaks=0"})[0])

    def own_copies(self):
        """A library path of the program's own (DT_RPATH), and a copy under another name, as in wheels."""
        versions = self.place.file("other.map", OTHER_VERSIONS, 0o644)
        for name in ("libibverbs.so.1", "libibverbs-1a2b3c4d.so.1"):
            compile_c(self.place, f"own/{name}", OTHER_LIBRARY, "-shared", "-fPIC", f"-Wl,--version-script={versions}",
                      f"-Wl,-soname,{name}")
            program = compile_c(self.place, f"uses-{name}", LISTER, f"{self.place.dir}/own/{name}", "-Wl,--disable-new-dtags",
                                f"-Wl,-rpath,{self.place.dir}/own")
            expect(f"{name}, plain", self.place.run(program)[0], "no device\n")
            expect_device(name, self.run(program)[0])
        versions = self.place.file("other-cm.map", OTHER_CM_VERSIONS, 0o644)
        for name in ("librdmacm.so.1", "librdmacm-1a2b3c4d.so.1"):
            compile_c(self.place, f"own-cm/{name}", OTHER_CM, "-shared", "-fPIC", f"-Wl,--version-script={versions}", f"-Wl,-soname,{name}")
            program = compile_c(self.place, f"uses-{name}", EVENT_NAME, f"{self.place.dir}/own-cm/{name}", "-Wl,--disable-new-dtags",
                                f"-Wl,-rpath,{self.place.dir}/own-cm")
            expect(f"{name}, plain", self.place.run(program)[0], "another library\n")
            expect(name, self.run(program)[0], "RDMA_CM_EVENT_ESTABLISHED\n")

    def said(self, program, words, runs=True, *arguments):
        out, err = self.run(program, *arguments, code=None if not runs else 0)
        if not re.fullmatch(rf"verbatim run: \S+ [^\n]*(?:{words})[^\n]*\n", err if runs else err.split("\n", 1)[0] + "\n"):
            raise Failure(f"{program}: {err!r} does not say {words!r} in one line\n{out}")
        expect("-q", self.run("-q", program, *arguments, code=None)[1] if runs else "", "")
        return out

    def static(self):
        program = compile_c(self.place, "static", READER, "-static")
        expect("a static program", self.said(program, "static .*--view=namespace", True, self.file), "nothing\n")
        script = self.place.file("static.sh", f"#!{program}\n")
        self.said(script, "static .*--view=namespace")

    def go(self):
        program = compile_c(self.place, "go", READER + GO_NOTE)
        self.said(program, "Go .*--view=namespace", True, self.file)

    def linked_in(self):
        program = compile_c(self.place, "linked", READER + "int ibv_open_device(void);\nint ibv_open_device(void) { return 0; }\n")
        self.said(program, "libibverbs of its own", True, self.file)

    def musl(self):
        loader = os.path.join(self.place.dir, "ld-musl-x86_64.so.1")
        real = re.search(r"interpreter: (\S+)\]", self.place.run("readelf", "-l", PYTHON)[0])
        os.symlink(os.path.realpath(real.group(1)), loader)
        program = compile_c(self.place, "musl", READER, f"-Wl,--dynamic-linker={loader}")
        expect("a program of musl", self.said(program, "musl", True, self.file), "nothing\n")

    def other_machines(self):
        self.said(self.place.file("bits", elf_head(32, 3)), "32 bits", False)
        self.said(self.place.file("arm", elf_head(64, 183)), "another processor", False)
        self.said(self.place.file("x32", elf_head(32, 62)), "32 bits", False)

    def hostile(self):
        """Files that claim to have what they have not."""
        with open(shutil.which("cat"), "rb") as handle:
            good = handle.read()
        seed = 1
        for number in range(60):
            bad = bytearray(good[:64 + number * 97])
            for _ in range(12):
                seed = seed * 1103515245 + 12345 & 0x7fffffff
                bad[16 + seed % (len(bad) - 16)] = seed >> 8 & 0xff
            self.run("-q", "--view=none", self.place.file("bad", bytes(bad)), code=None)

    def raised(self):
        if os.geteuid() != 0 or not self.place.ordinary:
            raise Skip("needs root to make a file, and another user to run it")
        if os.statvfs(self.place.dir).f_flag & os.ST_NOSUID:
            raise Skip("the temporary folder is mounted nosuid")
        for name, mode in (("setuid", 0o4755), ("setgid", 0o2755)):
            program = shutil.copy(shutil.which("true"), os.path.join(self.place.dir, name))
            os.chmod(program, mode)
            self.said(program, "more rights .*--view=namespace")
        program = shutil.copy(shutil.which("true"), os.path.join(self.place.dir, "caps"))
        # struct vfs_ns_cap_data, version 2: CAP_NET_RAW permitted (linux/capability.h)
        os.setxattr(program, "security.capability", struct.pack("<IIIII", 0x02000000, 1 << 13, 0, 0, 0))
        self.said(program, "more rights .*--view=namespace")


CASES = [
    ("the files and the library", Run.shown), ("exit status", Run.statuses), ("process, descriptors, children", Run.process),
    ("LD_PRELOAD and LD_LIBRARY_PATH that are set", Run.preloads), ("options", Run.options),
    ("libraries in a folder with separators in its name", Run.odd_folder), ("dlopen by both names", Run.by_name), ("scripts", Run.scripts),
    ("programs of connections", Run.connections), ("rsockets", Run.rsockets), ("mapped memory", Run.mapped),
    ("counters right after a transfer", Run.counters),
    ("gcc, address sanitizer", lambda run: run.sanitizer("gcc", "-fsanitize=address")),
    ("gcc, undefined sanitizer", lambda run: run.sanitizer("gcc", "-fsanitize=undefined")),
    ("gcc, thread sanitizer", lambda run: run.sanitizer("gcc", "-fsanitize=thread")),
    ("gcc, address sanitizer linked in", lambda run: run.sanitizer("gcc", "-fsanitize=address", "-static-libasan")),
    ("clang, address sanitizer", lambda run: run.sanitizer("clang", "-fsanitize=address")),
    ("clang, thread sanitizer", lambda run: run.sanitizer("clang", "-fsanitize=thread")),
    ("copies that a program brings", Run.own_copies), ("a static program", Run.static), ("a program of Go", Run.go),
    ("libibverbs linked in", Run.linked_in), ("musl", Run.musl), ("other machines", Run.other_machines),
    ("damaged program files", Run.hostile), ("setuid, setgid, capabilities", Run.raised),
]
# What a user's rights make a difference to; the rest runs once.
EACH = {"the files and the library", "process, descriptors, children", "options", "setuid, setgid, capabilities", "exit status"}

sys.exit(run_cases(__doc__, ["--early"], Run, CASES, lambda name, ordinary: name in EACH or ordinary or os.geteuid() != 0))
