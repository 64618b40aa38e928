# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""As whom the cases run. An ordinary user makes the two hosts in a user namespace of its own and is its root; the programs under
test get none of the capabilities that this gives, not even towards that namespace."""

import os
import shutil
import subprocess
import tempfile

import hosts
from pairs import QUICK_CLOCK

ORDINARY = 65532
PROGRAMS = ("mcast", "reply", "xrc", "memory", "dm", "reused", "strays", "join")  # built ones that the cases start
NO_RIGHTS = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs"]


def run_as_ordinary(driver, args, programs=PROGRAMS, folders=("apps", "udp")):
    """The driver once more as an ordinary user, with copies of what that user may not read: its folders of tests, the libraries,
    and the built programs that `args` names. Returns its exit status."""
    place = tempfile.mkdtemp(prefix="verbatim-udp-")
    here = os.path.dirname(driver)
    try:
        for name in folders:
            shutil.copytree(os.path.join(os.path.dirname(here), name), os.path.join(place, name))
        lib = os.path.join(place, "lib")
        os.mkdir(lib)
        for name in os.listdir(args.lib):
            if ".so" in name and not os.path.isdir(os.path.join(args.lib, name)):
                shutil.copy(os.path.join(args.lib, name), lib, follow_symlinks=False)
        built = [word for name in programs
                 for word in (f"--{name}", shutil.copy(getattr(args, name), place))]
        env = {key: value for key, value in os.environ.items() if key != hosts.MARK}
        if QUICK_CLOCK in env:
            env[QUICK_CLOCK] = shutil.copy(env[QUICK_CLOCK], place)
        os.chmod(place, 0o755)
        for top, dirs, files in os.walk(place):
            for name in dirs + files:
                path = os.path.join(top, name)
                if not os.path.islink(path):
                    os.chmod(path, os.stat(path).st_mode | 0o755)
        argv = ["setpriv", f"--reuid={ORDINARY}", f"--regid={ORDINARY}", "--clear-groups", "--inh-caps=-all", "--pdeathsig", "TERM",
                "/usr/bin/python3", os.path.join(place, os.path.basename(here), os.path.basename(driver)), "--lib", lib, *built,
                "--ordinary", "--shares", str(args.shares)]
        argv += ["--only", args.only] if args.only else []
        argv += [f"--{name}" for name in ("all", "brief", "debug") if getattr(args, name, False)]
        driver = subprocess.Popen(argv, env=env, cwd=place)
        try:
            return driver.wait()
        except BaseException:  # told to end: so is the driver, which then clears up what it has
            driver.terminate()
            driver.wait()
            raise
    finally:
        shutil.rmtree(place, ignore_errors=True)
