# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Where a test of `verbatim run` works: a folder of its own, a runtime directory of its own, the program and its libraries where the
user of the test can read them, and programs run to their end as that user."""

import argparse
import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "apps"))

from pairs import ORDINARY, Failure, free_port, views_below  # noqa: E402,F401
from shares import Report, Skip  # noqa: E402,F401

SKIP = 77
CLEAN = ("LD_LIBRARY_PATH", "LD_PRELOAD", "VERBATIM_VIEW", "VERBATIM_REPORT", "ASAN_OPTIONS", "VERBATIM_LOG")
if "/usr/sbin" not in os.environ.get("PATH", "").split(":"):  # an ordinary user of Debian has chroot and ip there
    os.environ["PATH"] = os.environ.get("PATH", "/usr/bin:/bin") + ":/usr/sbin:/sbin"
AS_ORDINARY = ["setpriv", f"--reuid={ORDINARY}", f"--regid={ORDINARY}", "--clear-groups", "--bounding-set=-all", "--inh-caps=-all"]


def skip(reason):
    print(reason, file=sys.stderr)
    sys.exit(SKIP)


def users():
    """The users that a test runs as: the one that started it, and as root an ordinary one, too."""
    return [("caller", False), ("ordinary", True)] if os.geteuid() == 0 else [("caller", False)]


class Place:
    """Use as a context manager. ordinary: programs run as a user without groups and rights."""

    def __init__(self, lib, verbatim, ordinary=False, name="verbatim-view-"):
        self.ordinary = ordinary
        self.dir = tempfile.mkdtemp(prefix=name)
        self.uid = ORDINARY if ordinary else os.geteuid()
        os.chmod(self.dir, 0o755)
        self.prefix = AS_ORDINARY if ordinary else []
        self.env = {key: value for key, value in os.environ.items() if key not in CLEAN}
        self.runtime = self.folder("runtime")
        # The folder that this test was started in may be closed to another user. Tests look at "." and "..": neither may change.
        self.folder("cwd", 0o755)
        self.cwd = self.folder("cwd/here", 0o755)
        self.env["VERBATIM_RUNTIME_DIR"] = self.runtime
        self.lib, self.verbatim = self.reachable(os.path.abspath(lib), os.path.abspath(verbatim))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.wait_gone()
        deadline = time.monotonic() + 20
        while os.path.exists(self.dir):  # a keeper may be removing its own part of it
            if time.monotonic() > deadline:
                raise Failure(f"{self.dir} cannot be removed: {os.listdir(self.dir)}")
            shutil.rmtree(self.dir, ignore_errors=True)

    def wait_gone(self, seconds=20):
        """Of the views in all runtime directories, of which a test may have several."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and views_below(self.dir):
            time.sleep(0.02)

    def folder(self, name, mode=0o700):
        """A folder of the user's in the test's folder."""
        path = os.path.join(self.dir, name)
        os.mkdir(path, mode)
        if self.ordinary:
            os.chown(path, ORDINARY, ORDINARY)
        return path

    def reachable(self, lib, verbatim):
        probe = subprocess.run([*self.prefix, "test", "-x", verbatim, "-a", "-r", os.path.join(lib, "libibverbs.so.1")], check=False)
        return (lib, verbatim) if probe.returncode == 0 else self.copy_tree("copy", lib, verbatim)

    def copy_tree(self, name, lib=None, verbatim=None):
        """A copy of the program and its libraries in a folder of that name; returns its library folder and program."""
        lib, verbatim = lib or self.lib, verbatim or self.verbatim
        folder = os.path.join(self.dir, name)
        os.makedirs(os.path.join(folder, "lib"))
        for entry in os.listdir(lib):
            path = os.path.join(lib, entry)
            if ".so" in entry and not os.path.isdir(path) and not entry.endswith(".symbols"):
                shutil.copy(path, os.path.join(folder, "lib"), follow_symlinks=False)
        os.mkdir(os.path.join(folder, "lib", "rsocket"))
        shutil.copy(os.path.join(lib, "rsocket", "librspreload.so"), os.path.join(folder, "lib", "rsocket"))
        return os.path.join(folder, "lib"), shutil.copy(verbatim, folder)

    def file(self, name, text, mode=0o755):
        path = os.path.join(self.dir, name)
        with open(path, "wb") as handle:
            handle.write(text if isinstance(text, bytes) else text.encode())
        os.chmod(path, mode)
        return path

    def program(self, path):
        """A built program where the user can start it."""
        if subprocess.run([*self.prefix, "test", "-x", path], check=False).returncode == 0:
            return path
        return shutil.copy(path, self.dir)

    def start(self, argv, env=None, **more):
        merged = {key: value for key, value in {**self.env, **(env or {})}.items() if value is not None}
        # Not into the program that changes the user.
        preload = merged.pop("LD_PRELOAD", None)
        if preload is not None:
            argv = ["env", f"LD_PRELOAD={preload}", *argv]
        return subprocess.Popen([*self.prefix, *argv], env=merged,
                                **{"cwd": self.cwd, "start_new_session": True, "stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE,
                                   "stderr": subprocess.PIPE, "text": True,
                                   "errors": "replace", **more})

    def run(self, *argv, code=0, timeout=60, **more):
        """Runs a program to its end; returns (standard output, standard error). code None: any exit status."""
        process = self.start(argv, **more)
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            # Its children have the ends of the pipes, too.
            with contextlib.suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
            raise Failure(f"{' '.join(argv)}: still running after {timeout} s\n{out}{err}") from None
        if code is not None and process.returncode != code:
            raise Failure(f"{' '.join(argv)}: exit status {process.returncode}, expected {code}\n{out}{err}")
        return out, err

    def verbatim_run(self, *argv, **more):
        return self.run(self.verbatim, "run", *argv, **more)


def run_cases(usage, options, make, cases, goes):
    """The main function of a test: its options (beside --lib, --verbatim and --only), and each case for each user for which
    goes(name, ordinary) says so, with what make(place, args) has made. Returns the exit status."""
    parser = argparse.ArgumentParser(usage=usage)
    for name in ("--lib", "--verbatim", *options):
        parser.add_argument(name, required=True)
    parser.add_argument("--only")
    args = parser.parse_args()
    report = Report(args.only)
    for who, ordinary in users()[::-1]:
        with Place(args.lib, args.verbatim, ordinary) as place:
            made = make(place, args)
            for name, case in cases:
                if goes(name, ordinary):
                    report.case(f"{who}: {name}", lambda case=case: case(made))
    return report.end()


def small_tree(folder):
    """The shape of a view with one device, vb_test0."""
    bdf = "7662:02:00.0"
    pci = f"{folder}/sys/devices/pci7662:00/{bdf}"
    files = {
        f"{pci}/vendor": "0x7662\n",
        f"{pci}/net/test0/dev_port": "0\n",
        f"{pci}/infiniband/vb_test0/node_guid": "0000:0000:0000:0001\n",
        f"{pci}/infiniband/vb_test0/ports/1/state": "4: ACTIVE\n",
        f"{pci}/infiniband/vb_test0/ports/1/gids/0": "0000:0000:0000:0000:0000:ffff:c633:6401\n",
        f"{pci}/infiniband_verbs/uverbs_test0/ibdev": "vb_test0\n",
        f"{folder}/sys/class/infiniband_verbs/abi_version": "6\n",
    }
    links = {
        f"{pci}/infiniband/vb_test0/device": f"../../../{bdf}",
        f"{folder}/sys/class/infiniband/vb_test0": f"../../devices/pci7662:00/{bdf}/infiniband/vb_test0",
        f"{folder}/sys/class/infiniband_verbs/uverbs_test0": f"../../devices/pci7662:00/{bdf}/infiniband_verbs/uverbs_test0",
        f"{folder}/sys/bus/pci/devices/{bdf}": f"../../../devices/pci7662:00/{bdf}",
        f"{folder}/dev/infiniband/uverbs_test0": "/dev/null",
    }
    if os.path.isdir("/sys/bus/pci/devices"):
        for name in os.listdir("/sys/bus/pci/devices"):
            links[f"{folder}/sys/bus/pci/devices/{name}"] = os.path.realpath(f"/sys/bus/pci/devices/{name}")
    for path, text in files.items():
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="ascii") as handle:
            handle.write(text)
        os.chmod(path, 0o444)
    for path, target in links.items():
        os.makedirs(os.path.dirname(path), exist_ok=True)
        os.symlink(target, path)
    return folder
