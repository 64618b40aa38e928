#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Usage: strangers.py --lib DIR --verbatim PROGRAM [--only REGEX]
Promise: whatever another user makes of a folder that he can write to, `verbatim view` changes nothing outside of the folder that
it was given: it refuses one that is not the caller's, or that another user can put elsewhere. A folder of the caller's own serves,
also in /tmp, through links of his own and with the umask 002. Prints one TAP line a case; exits 1 when one failed."""

import os
import subprocess
import sys

sys.dont_write_bytecode = True

from place import AS_ORDINARY, ORDINARY, Failure, Skip, run_cases  # noqa: E402

RUNS = 40
FOLDERS = ["sys", "sys/class", "sys/class/infiniband", "sys/devices", "sys/bus", "dev", ".new"]

# Exchanges each folder with a link, as fast as it can. Arguments: the folder in which, names, and where the links lead.
SWAPPER = """
import ctypes, os, sys
RENAME_EXCHANGE, AT_FDCWD = 2, -100
top, names, aim = sys.argv[1], sys.argv[2].split(","), sys.argv[3]
libc = ctypes.CDLL(None)
pairs = []
for name in names:
    path = os.path.join(top, name)
    os.makedirs(path, exist_ok=True)
    os.symlink(aim, path + ".link")
    pairs.append((path.encode(), (path + ".link").encode()))
print("ready", flush=True)
while os.getppid() == int(sys.argv[4]):
    for one, other in pairs:
        libc.renameat2(AT_FDCWD, one, AT_FDCWD, other, RENAME_EXCHANGE)
"""


def snapshot(folder):
    found = []
    for where, folders, names in os.walk(folder):
        for name in folders + names:
            path = os.path.join(where, name)
            st = os.lstat(path)
            found.append((path, st.st_ino, st.st_mode, st.st_size))
    return sorted(found)


class Strangers:
    def __init__(self, place, _):
        self.place = place
        self.outside = self.own("outside")
        for name in ("class/infiniband/other", "infiniband/other", "other"):
            os.makedirs(os.path.join(self.outside, os.path.dirname(name)), exist_ok=True)
            with open(os.path.join(self.outside, name), "w", encoding="ascii") as handle:
                handle.write("a file that has nothing to do with the view\n")
        self.theirs = self.own("theirs")
        if os.geteuid() == 0:
            os.chown(self.theirs, ORDINARY, ORDINARY)

    def own(self, name, mode=0o755):
        path = os.path.join(self.place.dir, name)
        os.mkdir(path)
        os.chmod(path, mode)
        return path

    def stranger(self, *argv):
        if os.geteuid() != 0:
            raise Skip("needs root and another user")
        subprocess.run([*AS_ORDINARY, *argv], check=True)

    def refused(self, folder):
        before = snapshot(self.outside)
        err = self.place.run(self.place.verbatim, "view", folder, code=None)[1]
        if "other users can change" not in err:
            raise Failure(f"verbatim view {folder}: {err!r}")
        if snapshot(self.outside) != before:
            raise Failure(f"changed outside: {sorted(set(before) ^ set(snapshot(self.outside)))}")

    def swapped(self, top, names, folder):
        """While another user exchanges names in `top` with links, `folder` is written."""
        self.stranger("true")
        with subprocess.Popen([*AS_ORDINARY, sys.executable, "-c", SWAPPER, top, names, self.outside, str(os.getpid())],
                              stdout=subprocess.PIPE) as swapper:
            try:
                if swapper.stdout.readline() != b"ready\n":
                    raise Failure("the exchange has not begun")
                before = snapshot(self.outside)
                for _ in range(RUNS):
                    self.place.run(self.place.verbatim, "view", folder, code=None)
                    if snapshot(self.outside) != before:
                        raise Failure(f"changed outside: {sorted(set(before) ^ set(snapshot(self.outside)))}")
                self.refused(folder)
            finally:
                swapper.kill()

    def folders_swapped(self):
        folder = os.path.join(self.theirs, "view")
        self.stranger("mkdir", folder)
        self.swapped(folder, ",".join(reversed(FOLDERS)), folder)

    def top_swapped(self):
        """The folder itself is the caller's, the one that it lies in is not."""
        self.stranger("mkdir", f"{self.theirs}/around")
        os.mkdir(f"{self.theirs}/around/view")
        self.swapped(f"{self.theirs}/around", "view", f"{self.theirs}/around/view")

    def planted_link(self):
        sticky = self.own("sticky", 0o1777)
        link = os.path.join(sticky, "link")
        self.stranger("ln", "-s", self.outside, link)
        self.refused(link)
        self.refused(os.path.join(link, "class"))

    def planted_folder(self):
        """In a folder of the caller's lies one of another user: from an earlier owner, say."""
        folder = self.own("inherited")
        self.stranger("true")
        for name in FOLDERS:
            path = os.path.join(folder, name)
            os.makedirs(path)
            os.chown(path, ORDINARY, ORDINARY)
            err = self.place.run(self.place.verbatim, "view", folder, code=1)[1]
            if "Operation not permitted" not in err:
                raise Failure(f"{name}: {err!r}")
            subprocess.run(["rm", "-r", folder], check=True)
            os.mkdir(folder)
        os.symlink(self.outside, os.path.join(folder, ".new"))
        before = snapshot(self.outside)
        self.place.run(self.place.verbatim, "view", folder, code=1)
        if snapshot(self.outside) != before:
            raise Failure("something was made where the link .new leads")

    def open_to_all(self):
        for name, mode in (("all", 0o777), ("sticky-all", 0o1777)):
            self.refused(self.own(name, mode))
        self.refused(os.path.join(self.own("around-all", 0o777), "view"))

    def own_places(self):
        base = self.place.folder("mine")
        user = self.place.run("sh", "-c", f"umask 002; cd {base}; mkdir -p shared/view shared/other; ln -s shared/other link; mkdir sticky;"
                              "chmod 1777 sticky; id -u")[0].strip()
        for name in ("shared/view", "link", "sticky/new", "shared/../new", "link/deep", "//new//"):
            self.place.run("sh", "-c", f"{self.place.verbatim} view '{base}/{name}' && test -d '{base}/{name}/sys/class/infiniband'")
        self.place.run("sh", "-c", f"cd {base} && {self.place.verbatim} view here && {self.place.verbatim} view . && test -d sys/class")
        if os.stat(os.path.join(base, "sticky/new")).st_uid != int(user):
            raise Failure("the tree is not the caller's")
        self.place.run("unshare", "-Ur", self.place.verbatim, "view", f"{base}/user-namespace",
                       code=0 if self.place.run("unshare", "-Ur", "true", code=None)[1] == "" else 1)


CASES = [
    ("folders that become links", Strangers.folders_swapped), ("a folder that becomes a link", Strangers.top_swapped),
    ("a link of another user", Strangers.planted_link), ("folders of another user in one of the caller's", Strangers.planted_folder),
    ("folders that all can write to", Strangers.open_to_all), ("the caller's own", Strangers.own_places),
]

sys.exit(run_cases(__doc__, [], Strangers, CASES,
                   lambda name, ordinary: name == "the caller's own" or not ordinary))
