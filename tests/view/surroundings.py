#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Usage: surroundings.py --lib DIR --verbatim PROGRAM --filtered PROGRAM [--only REGEX]
Promise: under `verbatim run` programs run in bad surroundings, too: without /sys, /proc or a place for files, on a full disk, with
many and oddly named interfaces, beside a real adapter's files, with few or closed descriptors, in a chroot and under a seccomp filter
as containers have. What is missing is said in one line, and nothing is left. Prints one TAP line a case; exits 1 when one failed."""

import os
import re
import subprocess
import sys
import time

sys.dont_write_bytecode = True

from place import Failure, Skip, free_port, run_cases  # noqa: E402

PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
# Prints "STATE of DEVICE" from the files, then the devices of the library.
LOOK = r"""
for d in /sys/class/infiniband/vb_*; do
    [ -r "$d/ports/1/state" ] && read -r state < "$d/ports/1/state" && echo "files: $state"
done
set -- $(ibv_devices | sed -n 's/^ *\(vb_[^ ]*\).*/\1/p')
echo "library: $#"
"""
TRANSFER = r"""
ibv_rc_pingpong -g 0 -c -n 50 -p $PORT > $OUT.1 2>&1 &
server=$!
until grep -qE "^ *[0-9]+: [0-9A-F]*:$(printf %04X $PORT) [0-9A-F]*:0000 0A" /proc/net/tcp /proc/net/tcp6; do
    kill -0 $server || exit 1
    sleep 0.02
done
ibv_rc_pingpong -g 0 -c -n 50 -p $PORT 127.0.0.1 > $OUT.2 2>&1 && wait $server && echo transferred
"""
ODD_NAMES = ["a.b-c_d", "-dash", "a,b", "$HOME", "a\\b", "a'b", 'a"b', "!x", "x*y", "q?[z]", "{br,ace}", "~", "\u00e4\u4e2d", "&;|", "#1"]


def expect_one_line(err, words):
    if not re.fullmatch(rf"verbatim run: [^\n]*(?:{words})[^\n]*\n", err):
        raise Failure(f"{err!r} does not say {words!r} in one line")


class Surroundings:
    def __init__(self, place, args):
        self.place = place
        self.filtered = place.program(os.path.abspath(args.filtered))
        self.out = os.path.join(place.folder("out"), "out")

    def look(self, *argv, before=(), env=None, **more):
        return self.place.run(*before, self.place.verbatim, "run", *argv, "sh", "-c", LOOK, env=env, **more)

    def seen(self, out, err="", files=True):
        if not re.fullmatch(r"files: \d: \w+\n(files: .*\n)*library: [1-9]\d*\n" if files else r"library: [1-9]\d*\n", out) or err:
            raise Failure(f"{out!r} {err!r}")

    def transfer(self, before=(), env=None, after="", **more):
        env = {"PORT": str(free_port()), "OUT": self.out, **(env or {})}
        out, err = self.place.run(*before, self.place.verbatim, "run", "sh", "-c", TRANSFER + after, env=env, **more)
        if out != "transferred\n" or err:
            texts = [open(f"{self.out}.{n}", encoding="utf-8", errors="replace").read() for n in (1, 2) if os.path.exists(f"{self.out}.{n}")]
            raise Failure(f"{out!r} {err!r}\n" + "\n".join(texts))

    def alone(self, setup, *argv, net=False, env=None, code=0, timeout=60):
        """Runs a command as the place's user in mounts of its own, after a shell script of root's, or of root of a user namespace."""
        flags = ["--mount", "--propagation", "private"] + (["--net"] if net else []) + ([] if os.geteuid() == 0 else ["--map-root-user"])
        script = f"set -e\n{setup}\nexec \"$@\""
        merged = {key: value for key, value in {**self.place.env, **(env or {})}.items() if value is not None}
        if subprocess.run(["unshare", *flags, "true"], capture_output=True, check=False).returncode != 0:
            raise Skip("namespaces may not be made here")
        run = subprocess.run(["unshare", *flags, "sh", "-c", script, "sh", *self.place.prefix, *argv], env=merged, cwd=self.place.cwd,
                             stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=timeout, check=False)
        if code is not None and run.returncode != code:
            raise Failure(f"{argv}: exit status {run.returncode}\n{run.stdout}{run.stderr}")
        return run.stdout, run.stderr

    def look_alone(self, setup, *argv, **more):
        return self.alone(setup, self.place.verbatim, "run", *argv, "sh", "-c", LOOK, **more)

    def no_sys(self):
        for how in ("--view=preload", "--view=namespace"):
            self.seen(*self.look_alone("mount -t tmpfs none /sys", how))

    def no_home(self):
        self.seen(*self.look(env={"HOME": "/nonexistent"}))
        self.seen(*self.look(env={"HOME": None}))
        self.seen(*self.look_alone(f"mkdir {self.place.dir}/home; mount -t tmpfs -o ro none {self.place.dir}/home",
                                   env={"HOME": f"{self.place.dir}/home"}))

    def no_run_user(self):
        folder = self.place.folder("scratch", 0o700)
        setup = "if [ -d /run/user ]; then mount -t tmpfs none /run/user; fi"
        gone = {"VERBATIM_RUNTIME_DIR": None, "XDG_RUNTIME_DIR": None}
        self.seen(*self.look_alone(setup, env={**gone, "TMPDIR": folder}))
        self.seen(*self.look_alone(setup, env={**gone, "TMPDIR": folder, "XDG_RUNTIME_DIR": "/nonexistent"}))
        deadline = time.monotonic() + 30
        while os.listdir(folder) and time.monotonic() < deadline:
            time.sleep(0.05)
        if os.listdir(folder):
            raise Failure(f"left in TMPDIR: {os.listdir(folder)}")

    def no_place(self):
        """A place for the view that cannot be had: the program has the library, and one line says what it has not."""
        full = os.path.join(self.place.dir, "full")
        os.mkdir(full)
        owner = f"uid={self.place.uid}" if os.geteuid() == 0 else "uid=0"
        for setup, words in ((f"mount -t tmpfs -o {owner},size=16k,mode=700 none {full}", "No space left"),
                             (f"mount -t tmpfs -o {owner},nr_inodes=20,mode=700 none {full}", "No space left"),
                             (f"mount -t tmpfs -o {owner},ro,mode=700 none {full}", "Read-only")):
            out, err = self.look_alone(setup, env={"VERBATIM_RUNTIME_DIR": full})
            self.seen(out, files=False)
            expect_one_line(err, f"no files of the devices.*{words}")
        open_folder = os.path.join(self.place.dir, "open")
        os.mkdir(open_folder)
        os.chmod(open_folder, 0o777)
        for value in (open_folder, "/nonexistent/x", "/etc/passwd", *(["/etc"] if self.place.uid else [])):
            out, err = self.look(env={"VERBATIM_RUNTIME_DIR": value})
            self.seen(out, files=False)
            expect_one_line(err, "no files of the devices")
        if self.look("-q", env={"VERBATIM_RUNTIME_DIR": "/nonexistent/x"})[1]:
            raise Failure("-q does not silence it")

    def links(self, commands):
        """A script that makes interfaces by one ip(8)."""
        batch = self.place.file("batch", "\n".join(["link set lo up", *commands]) + "\n", 0o644)
        return f"PATH=$PATH:/usr/sbin; ip -batch {batch}"

    def many(self):
        pairs = 100
        commands = []
        for n in range(pairs):
            commands.append(f"link add a{n} type veth peer name b{n}")
            commands += [f"addr add 10.{side}.{n}.1/24 dev {name}{n}" for side, name in enumerate("ab")]
            commands += [f"link set {name}{n} up" for name in "ab"]
        out, err = self.look_alone(self.links(commands), net=True, timeout=200)
        if out.count("files: 4: ACTIVE\n") != 2 * pairs or not out.endswith(f"library: {2 * pairs}\n") or err:
            raise Failure(f"{out.count('files:')} devices with files, of {2 * pairs}; {out[-20:]!r} {err!r}")

    def odd_names(self):
        setup = ["PATH=$PATH:/usr/sbin", "ip link set lo up"]
        for number, name in enumerate(ODD_NAMES):
            quoted = "'" + name.replace("'", "'\\''") + "'"
            setup += [f"ip link add name x{number} type veth peer name y{number}", f"ip link set dev x{number} name {quoted}",
                      f"ip link set dev {quoted} up", f"ip link set dev y{number} up", f"ip addr add 10.9.{number}.1/24 dev {quoted}"]
        setup = "\n".join(setup)
        script = r"""
import os
for name in sorted(os.listdir("/sys/class/infiniband")):
    with open("/sys/class/infiniband/" + name + "/ports/1/gid_attrs/ndevs/0") as f:
        print(name, f.read().strip(), os.path.exists("/dev/infiniband/uverbs_" + name[3:]))
"""
        for how in ("--view=preload", "--view=namespace"):
            out, err = self.alone(setup, self.place.verbatim, "run", how, PYTHON, "-X", "utf8", "-c", script, net=True,
                                  env={"VERBATIM_DEVICES": "!vb_lo,!vb_y*"})
            want = sorted(f"vb_{name} {name} True" for name in ODD_NAMES)
            got = sorted(out.splitlines())
            if got != want or err:
                raise Failure(f"{how}: missing {set(want) - set(got)}, beside {set(got) - set(want)}; {err}")

    def real_entries(self):
        """Files of another adapter, and of one that has the name of ours."""
        name = self.look("-q")[0] and self.place.verbatim_run("sh", "-c", "cd /sys/class/infiniband && echo *")[0].split()[0]
        # A copy of the links in /sys/class, since new entries cannot be made in the kernel's own directory.
        setup = f"""
mkdir {self.place.dir}/class
for c in /sys/class/*; do ln -s $c {self.place.dir}/class/; done
rm -rf {self.place.dir}/class/net {self.place.dir}/class/infiniband {self.place.dir}/class/infiniband_verbs
mkdir -p {self.place.dir}/class/net {self.place.dir}/class/infiniband
cp -P /sys/class/net/* {self.place.dir}/class/net/
for d in real_0 {name}; do
    mkdir -p {self.place.dir}/class/devices/$d/ports/1
    echo "9: REAL" > {self.place.dir}/class/devices/$d/ports/1/state
    ln -s {self.place.dir}/class/devices/$d {self.place.dir}/class/infiniband/
done
chmod -R a+rX {self.place.dir}/class
mount --bind {self.place.dir}/class /sys/class
mkdir {self.place.dir}/class/dev
mount -t tmpfs none {self.place.dir}/class/dev
cd {self.place.dir}/class/dev
for f in null zero full random urandom tty; do : > $f; mount --bind /dev/$f $f; done
mkdir infiniband; : > infiniband/real7; mount --bind /dev/zero infiniband/real7
mount --rbind . /dev
cd /
"""
        show = f"cat /sys/class/infiniband/{name}/ports/1/state /sys/class/infiniband/real_0/ports/1/state; cd /sys/class/infiniband; " \
               "for d in *; do echo $d; done | sort | tr '\\n' ' '; echo; stat -L -c %t:%T /dev/infiniband/real7 /dev/infiniband/uverbs_*"
        try:
            for how in ("--view=preload", "--view=namespace"):
                # The keeper of another mount namespace would show what is real there.
                out, err = self.alone(setup, self.place.verbatim, "run", how, "sh", "-c", show,
                                      env={"VERBATIM_RUNTIME_DIR": self.place.folder("real" + how)})
                subprocess.run(["rm", "-rf", f"{self.place.dir}/class"], check=True)
                first, second, names, *files = out.splitlines() + ["", "", ""]
                if files[:2] != ["1:5", "1:3"]:
                    raise Failure(f"{how}: device files of the real adapter and of ours: {out!r} {err!r}")
                # What the machine has is never hidden, not by ours either.
                if (first, second) != ("9: REAL", "9: REAL") or not {name, "real_0"} <= set(names.split()) or err:
                    raise Failure(f"{how}: {out!r} {err!r}")
        finally:
            subprocess.run(["rm", "-rf", f"{self.place.dir}/class"], check=True)

    def peer_memory(self):
        """A machine whose adapters reach the memory of its GPUs; the software devices do not."""
        setup = """
mount -t tmpfs none /sys/module; mkdir /sys/module/nvidia_peermem /sys/module/nv_peer_mem /sys/module/other
mount -t tmpfs none /sys/kernel/mm; mkdir -p /sys/kernel/mm/memory_peers/nv_mem /sys/kernel/mm/hugepages
for f in module/nvidia_peermem module/nv_peer_mem module/other kernel/mm/memory_peers/nv_mem kernel/mm/hugepages; do echo 1 > /sys/$f/version; done
"""
        show = "cd /sys && for f in module/nvidia_peermem module/nv_peer_mem kernel/mm/memory_peers/nv_mem module/other kernel/mm/hugepages; do " \
               "[ ! -e /sys/$f/version ] || echo $f; [ ! -e $f/version ] || echo $f; done"
        for how in ("--view=preload", "--view=namespace"):
            out, err = self.alone(setup, self.place.verbatim, "run", how, "sh", "-c", show)
            if (out, err) != ("module/other\nmodule/other\nkernel/mm/hugepages\nkernel/mm/hugepages\n", ""):
                raise Failure(f"{how}: {out!r} {err!r}")

    def deleted(self):
        """The view goes while a program uses it: what needs the files finds none or finds them again; the library works on."""
        script = f"{LOOK}\nrm -rf $VERBATIM_VIEW/sys $VERBATIM_VIEW/dev 2> /dev/null; ls /sys/class/net > /dev/null && ls /sys/bus > /dev/null || exit 1\n" \
                 "ibv_devices | grep -q vb_ && cd / && echo on"
        out, err = self.place.verbatim_run("sh", "-c", script)
        if not out.endswith("on\n") or err:
            raise Failure(f"{out!r} {err!r}")
        self.transfer(after='rm -rf "$VERBATIM_VIEW" 2> /dev/null; true')

    def two_versions(self):
        """A second copy of the library in one process, and a peer that uses another copy."""
        lib, verbatim = self.place.copy_tree("other")
        script = """
import ctypes, sys
def devices(path):
    lib = ctypes.CDLL(path)
    lib.ibv_get_device_list.restype = ctypes.POINTER(ctypes.c_void_p)
    lib.ibv_open_device.restype = lib.ibv_alloc_pd.restype = ctypes.c_void_p
    lib.ibv_open_device.argtypes = lib.ibv_alloc_pd.argtypes = [ctypes.c_void_p]
    return bool(lib.ibv_alloc_pd(lib.ibv_open_device(lib.ibv_get_device_list(None)[0])))
print(devices("libibverbs.so.1"), devices(sys.argv[1] + "/libibverbs.so.1"), devices("libibverbs.so"))
"""
        out, err = self.place.verbatim_run(PYTHON, "-c", script, lib)
        if (out, err) != ("True True True\n", ""):
            raise Failure(f"{out!r} {err!r}")
        port = str(free_port())
        argv = ["ibv_rc_pingpong", "-g", "0", "-c", "-n", "50", "-p", port]
        server = self.place.start([verbatim, "run", *argv])
        try:
            for _ in range(1000):
                out, err = self.place.verbatim_run(*argv, "127.0.0.1", code=None)
                if "Couldn't connect" not in err or server.poll() is not None:
                    break
                time.sleep(0.02)
            told = server.communicate(timeout=30)
            if server.returncode != 0:
                raise Failure(f"{out}{err}{told}")
        finally:
            server.kill()
            server.wait()

    def few_descriptors(self):
        limit = ["prlimit", "--nofile=64:64"]
        self.seen(*self.look(before=limit))
        self.seen(*self.look("--view=namespace", before=limit) if self.may_enter() else self.look(before=limit))
        self.transfer(before=limit)

    @staticmethod
    def may_enter():
        return subprocess.run(["unshare", "--user", "--mount", "true"], capture_output=True, check=False).returncode == 0

    def closed_descriptors(self):
        """Each set of closed standard descriptors: the program finds them closed, and no message lands in a file of its own."""
        file = self.out + ".fds"
        see = "import os, sys\nfds = [n for n in range(64) if os.path.exists(f'/proc/self/fd/{n}')]\nopen(sys.argv[1], 'a').write(f'{fds} ')"
        for closed in ((0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)):
            close = " ".join(f"{n}<&-" for n in closed)
            want = [n for n in range(3) if n not in closed]
            for how in ("--view=preload", "--view=namespace"):
                if how == "--view=namespace" and not self.may_enter():
                    continue
                if os.path.exists(file):
                    os.unlink(file)
                self.place.run("sh", "-c", f"exec {close}\nexec \"$@\"", "sh", self.place.verbatim, "run", "-v", how, PYTHON, "-c", see, file)
                with open(file, encoding="ascii") as handle:
                    got = handle.read()
                if got != f"{want} ":
                    raise Failure(f"{how}, {closed} closed: the program has {got}")
            os.unlink(file)
        script = TRANSFER.replace("> $OUT.1 2>&1", "<&- >&- 2>&-").replace("> $OUT.2 2>&1", "<&- >&- 2>&-")
        out, err = self.place.verbatim_run("sh", "-c", script, env={"PORT": str(free_port())})
        if (out, err) != ("transferred\n", ""):
            raise Failure(f"{out!r} {err!r}")

    def chroot(self):
        root = os.path.join(self.place.dir, "root")
        os.mkdir(root)
        for mounts, name in (("usr bin lib lib64 etc proc dev sys", "with /proc and /sys"), ("usr bin lib lib64 etc", "with neither")):
            here = [self.place.dir, os.path.dirname(self.place.lib)]
            setup = f"""
mount -t tmpfs none {root}
cd {root}
for d in {mounts}; do if [ -L /$d ]; then cp -P /$d .; elif [ -d /$d ]; then mkdir -p $d; mount --rbind /$d $d; fi; done
mkdir -p tmp {' '.join('.' + path for path in here)}
chmod 1777 tmp
[ -e dev/null ] || {{ mkdir -p dev; : > dev/null; mount --bind /dev/null dev/null; }}
{''.join(f'mount --rbind {path} .{path}; ' for path in reversed(here))}
"""
            user = ["--userspec", f"{self.place.uid}:{self.place.uid}"] if self.place.ordinary else []
            inner = Surroundings.__new__(Surroundings)
            inner.__dict__ = {**self.__dict__}
            prefix, self.place.prefix = self.place.prefix, []
            try:
                out, err = self.alone(setup, "chroot", *user, root, self.place.verbatim, "run", "sh", "-c", LOOK)
                self.seen(out, err)
                if self.place.ordinary and "sys" in mounts.split():
                    out, err = self.alone(setup, "chroot", *user, root, self.place.verbatim, "run", "--view=namespace", "sh", "-c", LOOK)
                    self.seen(out)
                    if "chroot" not in err.splitlines()[0] or len(err.splitlines()) != 2:
                        raise Failure(f"{name}: the namespace is refused without the reason: {err!r}")
            except Failure as fault:
                raise Failure(f"{name}: {fault}") from None
            finally:
                self.place.prefix = prefix

    def seccomp(self):
        before = [self.filtered]
        if self.place.run(*before, "true", code=None)[1]:
            raise Skip("no seccomp filter can be set here")
        self.seen(*self.look(before=before))
        self.transfer(before=before)
        out, err = self.look("--view=namespace", before=before)
        self.seen(out)
        lines = err.splitlines()
        if len(lines) != 2 or "seccomp" not in lines[0] or "verbatim view" not in lines[1]:
            raise Failure(f"the namespace is refused without reason or cure: {err!r}")

    def no_namespaces(self):
        """The sysctl of a user namespace stands for that of a machine."""
        run = subprocess.run(["unshare", "--user", "--map-root-user", "sh", "-c", "echo 0 > /proc/sys/user/max_user_namespaces && exec \"$@\"", "sh",
                              "setpriv", "--bounding-set=-all", "--inh-caps=-all", self.place.verbatim, "run", "--view=namespace", "sh", "-c", LOOK],
                             env={**self.place.env, "VERBATIM_RUNTIME_DIR": self.place.folder("refused")}, capture_output=True, text=True, check=False)
        if "max_user_namespaces is 0" not in run.stderr:
            raise Failure(f"{run.stdout!r} {run.stderr!r}")
        self.seen(run.stdout)

    def left(self):
        self.place.wait_gone()
        if os.path.isdir(self.place.runtime) and os.listdir(self.place.runtime):
            raise Failure(f"left: {os.listdir(self.place.runtime)}")


CASES = [
    ("no /sys", Surroundings.no_sys), ("no home, a read-only home", Surroundings.no_home), ("no /run/user", Surroundings.no_run_user),
    ("no place for the view", Surroundings.no_place), ("200 interfaces", Surroundings.many), ("odd names of interfaces", Surroundings.odd_names),
    ("entries of real adapters", Surroundings.real_entries), ("adapters that reach the memory of GPUs", Surroundings.peer_memory),
    ("the view is deleted", Surroundings.deleted),
    ("two versions of the library", Surroundings.two_versions), ("64 descriptors", Surroundings.few_descriptors),
    ("closed standard descriptors", Surroundings.closed_descriptors), ("chroot", Surroundings.chroot),
    ("a container's seccomp filter", Surroundings.seccomp), ("namespaces forbidden by a sysctl", Surroundings.no_namespaces),
    ("nothing is left", Surroundings.left),
]
# What a user's rights make no difference to.
ONCE = {"200 interfaces", "odd names of interfaces", "namespaces forbidden by a sysctl"}

sys.exit(run_cases(__doc__, ["--filtered"], Surroundings, CASES, lambda name, ordinary: name not in ONCE or not ordinary))
