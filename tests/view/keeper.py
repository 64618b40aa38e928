#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Usage: keeper.py --lib DIR --verbatim PROGRAM [--shares N] [--only REGEX]
Promise: a view is there while a program uses it and is gone soon after the last one, whoever is killed in between; it is made anew
when it is removed; there is one keeper, however many programs start at once; users do not share views.
Prints one TAP line a case; exits 1 when one failed."""

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True

from place import AS_ORDINARY, Failure, Place, Report, Skip, users  # noqa: E402
from shares import run_shared  # noqa: E402

PATIENCE = 30
LASTING = "3600.5"  # seconds; a number that no other sleep(1) has


def wait(what, check, seconds=PATIENCE):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        result = check()
        if result:
            return result
        time.sleep(0.02)
    raise Failure(f"{what}: not within {seconds} s")


def arguments(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as handle:
            return [word.decode("utf-8", "replace") for word in handle.read().split(b"\0") if word]
    except OSError:
        return []


def parent(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as handle:
            return int(handle.read().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as handle:
            return handle.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def identity(path):
    """Which directory it is; a new one may get the inode number of one that was removed."""
    try:
        status = os.stat(path)
        return status.st_ino, status.st_ctime_ns
    except OSError:
        return None


def remove(path, trash):
    """At once, as rm -r can when nobody is quicker. A keeper that is just writing has the folder open, and may make a file in it after
    it was emptied."""
    place = os.path.join(trash, f"removed-{time.monotonic_ns()}")
    os.rename(path, place)
    wait(f"the end of {place}", lambda: shutil.rmtree(place, ignore_errors=True) or not os.path.exists(place))


class View:
    """The view of a place: what lies in its runtime directory, and the processes that keep it."""

    def __init__(self, place):
        self.place = place
        self.sleepers = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for pid in self.sleepers + self.processes():
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        shutil.rmtree(self.place.runtime, ignore_errors=True)

    def dirs(self):
        try:
            return [os.path.join(self.place.runtime, name) for name in os.listdir(self.place.runtime) if name.startswith("view-")]
        except FileNotFoundError:
            return []

    def dir(self):
        dirs = self.dirs()
        if len(dirs) != 1:
            raise Failure(f"views: {dirs}")
        return dirs[0]

    def processes(self):
        """Keeper and standby, the keeper first."""
        found = [int(pid) for pid in os.listdir("/proc") if pid.isdigit() and is_running(pid) and self.keeps(arguments(pid))]
        return sorted(found, key=lambda pid: parent(pid) in found)

    def keeps(self, argv):
        return argv[:3] == ["verbatim", "view", "--keep"] and argv[3].startswith(self.place.runtime)

    def pair(self):
        return wait("keeper and standby", lambda: len(self.processes()) == 2 and self.processes())

    def start(self, *argv):
        process = self.place.start([self.place.verbatim, "run", "-q", *(argv or ("sleep", LASTING))])
        self.sleepers.append(process.pid)
        wait("the program", lambda: "sleep" in arguments(process.pid) or process.poll() is not None)
        return process

    def expect_whole(self):
        dir = wait("a view", lambda: self.dirs() and self.dir())
        wait("its devices", lambda: os.path.exists(f"{dir}/sys/class/infiniband") and os.listdir(f"{dir}/sys/class/infiniband"))
        for name in os.listdir(f"{dir}/sys/class/infiniband"):
            if name.startswith("vb_"):
                wait(f"state of {name}", lambda: os.path.exists(f"{dir}/sys/class/infiniband/{name}/ports/1/state"))
        return dir

    def expect_gone(self):
        """Nothing is left; the runtime directory itself can stay where its user may not remove it."""
        wait("the end of the view", lambda: not os.path.exists(self.place.runtime)
             or self.place.ordinary and not os.listdir(self.place.runtime))
        wait("the end of its keepers", lambda: not self.processes())


def ends_with_program(view):
    program = view.start()
    view.expect_whole()
    view.pair()
    program.kill()
    program.wait()
    view.expect_gone()


def ends_with_daemon(view):
    """The program ends and leaves a process without descriptors and terminal behind."""
    view.start("sh", "-c", f"setsid sleep {LASTING} <&- >&- 2>&- & exit 0").wait()
    daemon = wait("the daemon", lambda: [int(p) for p in os.listdir("/proc") if p.isdigit() and arguments(p) == ["sleep", LASTING]
                                         and f"VERBATIM_RUNTIME_DIR={view.place.runtime}" in environment(p)])
    view.sleepers += daemon
    time.sleep(2.5)  # more than a view outlives its users
    view.expect_whole()
    for pid in daemon:
        os.kill(pid, signal.SIGKILL)
    view.expect_gone()


def environment(pid):
    try:
        with open(f"/proc/{pid}/environ", "rb") as handle:
            return handle.read().decode("utf-8", "replace").split("\0")
    except OSError:
        return []


def kept_by_another(view, which):
    program = view.start()
    view.expect_whole()
    former = view.pair()
    os.kill(former[which], signal.SIGKILL)
    wait("another one", lambda: len(view.processes()) == 2 and set(view.processes()) != set(former))
    remove(os.path.join(view.dir(), "sys"), view.place.dir)
    view.expect_whole()
    program.kill()
    program.wait()
    view.expect_gone()


def all_killed(view):
    program = view.start()
    view.expect_whole()
    for pid in view.pair():
        os.kill(pid, signal.SIGSTOP)  # so that none of them starts another one
    killed = view.processes()
    for pid in killed + [program.pid]:
        os.kill(pid, signal.SIGKILL)
    program.wait()
    # A process that is ending has no arguments any more, but still its descriptors, and the lock.
    wait("their end", lambda: not any(map(is_running, killed)))
    view.dir()
    view.start("true").wait()
    view.expect_gone()


def stale_one(view):
    """What is left of another network namespace goes when any view is made."""
    stale = os.path.join(view.place.runtime, "view-1")
    view.place.run("mkdir", "-p", f"{stale}/sys/class/infiniband", f"{stale}/.counters")
    view.start("true").wait()
    view.expect_gone()


def removed_while_used(view):
    program = view.start()
    view.expect_whole()
    view.pair()
    for part in ("sys/class/infiniband", "dev", ""):
        path = os.path.join(view.dir(), part)
        made = identity(path)
        remove(path, view.place.dir)
        wait(f"{part or 'the view'} again", lambda: identity(path) not in (None, made))
        view.expect_whole()
    view.pair()
    program.kill()
    program.wait()
    view.expect_gone()


def removed_whole(view):
    """The runtime directory goes with everything in it, and nobody uses the view any more: the keeper ends as well."""
    program = view.start()
    view.expect_whole()
    view.pair()
    program.kill()
    program.wait()
    remove(view.place.runtime, view.place.dir)
    view.expect_gone()


def many_at_once(view):
    programs = [view.place.start([view.place.verbatim, "run", "-q", "sleep", LASTING]) for _ in range(16)]
    view.sleepers += [program.pid for program in programs]
    view.expect_whole()
    wait("all programs", lambda: all(arguments(program.pid)[:1] == ["sleep"] for program in programs))
    view.pair()
    view.start("true").wait()
    view.pair()
    for program in programs:
        program.kill()
        program.wait()
    view.expect_gone()


def full_disk(place):
    """One line with the reason; and what is there already is not lost when it becomes full."""
    if os.geteuid() != 0:
        raise Skip("only root can mount a small file system here")
    script = """mount -t tmpfs -o size=256k small "$1" && head -c 220k /dev/zero > "$1/ballast" && ! "$0" view "$1/v" &&
        rm "$1/ballast" && umount "$1" && mount -t tmpfs -o size=8m small "$1" && "$0" view "$1/v" &&
        rm "$1"/v/sys/class/infiniband/*/fw_ver && ! head -c 9m /dev/zero > "$1/ballast" 2>/dev/null; ! "$0" view "$1/v" && cat "$1"/v/sys/class/infiniband/*/node_type"""
    out, err = place.run("unshare", "-m", "sh", "-ec", script, place.verbatim, place.folder("small"))
    lines = [line for line in err.splitlines() if line]
    if len(lines) != 2 or not all("No space left on device" in line and line.startswith("verbatim view: ") for line in lines):
        raise Failure(f"standard error:\n{err}")
    if "1: CA" not in out:
        raise Failure(f"standard output:\n{out}")


def small_files(place):
    """RLIMIT_FSIZE 0: one line instead of SIGXFSZ. The library itself cannot open a device then."""
    folder = place.folder("limited")
    _, err = place.run("sh", "-c", 'ulimit -f 0; exec "$0" view "$1"', place.verbatim, folder, code=1)
    if not re.match(r"verbatim view: cannot (read|write) .*: File too large\n$", err):
        raise Failure(f"standard error:\n{err}")


def few_descriptors(place):
    """With few descriptors, and without the standard ones."""
    out, _ = place.run("sh", "-c", 'ulimit -n 20; exec "$0" run cat /sys/class/infiniband_verbs/abi_version', place.verbatim)
    if out != "6\n":
        raise Failure(f"standard output:\n{out}")
    place.run("sh", "-c", 'exec "$0" run -q sh -c "test -d /sys/class/infiniband" <&- >&- 2>&-', place.verbatim)


def no_folders(place):
    """Without /sys, and without /proc, the tree is written nevertheless."""
    for hidden in ("/sys", "/proc"):
        script = 'mount -t tmpfs none "$1" && "$0" view "$2" && cat "$2"/sys/class/infiniband/*/ports/1/state "$2"/sys/class/infiniband/*/device/local_cpus'
        enter = ["unshare", "-m"] if os.geteuid() == 0 and not place.ordinary else ["unshare", "-rm"]
        if subprocess.run([*place.prefix, *enter, "true"], capture_output=True, check=False).returncode:
            raise Skip("no mount namespace for this user")
        out, _ = place.run(*enter, "sh", "-ec", script, place.verbatim, hidden, place.folder("without" + hidden.replace("/", "-")))
        if not re.match(r"(\d: [A-Z]+\n)+([0-9a-f,]+\n)+$", out):
            raise Failure(f"without {hidden}:\n{out}")


def apart(place):
    """Two users with one TMPDIR have views of their own, which the other one cannot enter."""
    if os.geteuid() != 0:
        raise Skip("only root can start programs of two users")
    base = place.folder("shared", 0o755)
    os.chmod(base, 0o1777)
    lib, verbatim = place.copy_tree("both")
    env = {key: value for key, value in place.env.items() if key not in ("VERBATIM_RUNTIME_DIR", "XDG_RUNTIME_DIR")}
    env["TMPDIR"] = base
    del lib
    mine = ["setpriv", "--reuid=65531", "--regid=65531", "--clear-groups"]
    if os.path.exists("/run/user/65531") or os.path.exists(f"/run/user/{AS_ORDINARY[1].partition('=')[2]}"):
        raise Skip("one of the users has a session here")
    programs = []
    try:
        for prefix in (mine, AS_ORDINARY):
            programs.append(subprocess.Popen([*prefix, verbatim, "run", "-q", "sleep", LASTING], env=env))
        wait("the programs", lambda: all(arguments(program.pid)[:1] == ["sleep"] for program in programs))
        wait("two folders", lambda: len(os.listdir(base)) == 2)
        inside = subprocess.run([*mine, "sh", "-c", 'for d in "$0"/*; do ls "$d" >/dev/null 2>&1 && echo "$d"; done', base],
                                capture_output=True, text=True, check=False).stdout.split()
        if inside != [os.path.join(base, "verbatim-65531")]:
            raise Failure(f"user 65531 can enter {inside}")
    finally:
        for program in programs:
            program.kill()
            program.wait()
    wait("their end", lambda: not os.listdir(base))


def wakes(pid):
    with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as handle:
        return sum(int(line.split()[1]) for line in handle if "ctxt_switches" in line)


def idle(view):
    """Nothing changes: keeper and standby sleep. Their own writing is no change."""
    view.start()
    view.expect_whole()
    keeper, standby = view.pair()

    def sleeps():
        before = wakes(keeper) + wakes(standby)
        time.sleep(1)
        return wakes(keeper) + wakes(standby) - before <= 4
    wait("quiet", sleeps)


def cases(report, place, user):
    def case(name, run):
        def go():
            os.makedirs(place.runtime, 0o700, exist_ok=True)
            os.chown(place.runtime, place.uid, -1)
            with View(place) as view:
                run(view)
        report.case(f"{user}: {name}", go)

    case("a view ends with its program", ends_with_program)
    case("a daemon without descriptors keeps it", ends_with_daemon)
    case("the keeper is killed", lambda view: kept_by_another(view, 0))
    case("the standby is killed", lambda view: kept_by_another(view, 1))
    case("program, keeper and standby are killed", all_killed)
    case("a stale view of another namespace", stale_one)
    case("the tree is removed while it is used", removed_while_used)
    case("the runtime directory is removed", removed_whole)
    case("an idle view costs nothing", idle)
    case("sixteen programs start at once", many_at_once)
    case("files may not grow", lambda view: small_files(view.place))
    case("few descriptors, or none", lambda view: few_descriptors(view.place))
    case("no /sys, no /proc", lambda view: no_folders(view.place))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lib", required=True)
    parser.add_argument("--verbatim", required=True)
    parser.add_argument("--shares", type=int, default=1, help="so many cases at once")
    parser.add_argument("--only")
    args = parser.parse_args()
    if args.shares > 1:
        return run_shared(args.shares)
    report = Report(args.only)
    for user, ordinary in users():
        with Place(args.lib, args.verbatim, ordinary) as place:
            cases(report, place, user)
            if not ordinary:
                report.case("full disk", lambda: full_disk(place))
                report.case("two users", lambda: apart(place))
    return report.end()


if __name__ == "__main__":
    sys.exit(main())
