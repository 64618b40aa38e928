#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Usage: follow.py --verbatim PROGRAM [--only REGEX]
Promise: a view that is kept follows interfaces and addresses that come, change their names and go; the machine's own adapters stand
in it unchanged, and one of the same name is not hidden. Each case runs in namespaces of its own (user, network, mount).
Prints one TAP line a case; exits 1 when one failed, 77 (reason on the last line of standard error) where there are none."""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True

from place import Failure, Report, skip  # noqa: E402

PATIENCE = 30
INSIDE = "--inside"
CLASS = "sys/class/infiniband"
ENTER = ["unshare", "-rnm", "--propagation", "private"]


def command(*argv):
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Failure(f"{' '.join(argv)}: {done.stderr}")
    return done.stdout


def read(*parts):
    try:
        with open(os.path.join(*parts), encoding="utf-8") as handle:
            return handle.read().rstrip("\n")
    except OSError:
        return None


def listing(*parts):
    try:
        return sorted(os.listdir(os.path.join(*parts)))
    except OSError:
        return None


def wait_for(what, ask, want):
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        found = ask()
        if found == want:
            return
        time.sleep(0.01)
    raise Failure(f"{what}: {found!r}, want {want!r}")


class Followed:
    """`verbatim view --follow` of a directory, while it is used as a context manager."""

    def __init__(self, verbatim, dir):
        self.dir = dir
        self.process = subprocess.Popen([verbatim, "view", "--follow", dir], stderr=subprocess.PIPE, text=True)
        wait_for("the first tree", lambda: os.path.isdir(os.path.join(dir, CLASS)), True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        try:
            err = self.process.communicate(timeout=PATIENCE)[1]
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise Failure("SIGTERM does not end it") from None
        if self.process.returncode or err:
            raise Failure(f"verbatim view --follow: exit status {self.process.returncode}\n{err}")

    def devices(self, *want):
        wait_for("devices", lambda: listing(self.dir, CLASS), sorted(want))
        files = ["uverbs" + name[2:] for name in want]
        wait_for("device files", lambda: listing(self.dir, "dev/infiniband"), sorted(files))

    def port(self, name, file, want):
        wait_for(f"{name}: {file}", lambda: read(self.dir, CLASS, name, "ports/1", file), want)


def interfaces(verbatim, dir):
    """Interfaces and addresses that come, change and go."""
    command("ip", "link", "set", "lo", "up")
    with Followed(verbatim, dir) as view:
        view.devices("vb_lo")
        command("ip", "link", "add", "first", "type", "veth", "peer", "name", "other")
        command("ip", "link", "set", "other", "up")
        command("ip", "link", "set", "first", "up")
        command("ip", "address", "add", "192.0.2.7/24", "dev", "first")
        view.port("vb_first", "gids/0", "0000:0000:0000:0000:0000:ffff:c000:0207")
        view.port("vb_first", "gid_attrs/types/0", "RoCE v2")
        view.port("vb_first", "gid_attrs/ndevs/0", "first")
        view.port("vb_first", "state", "4: ACTIVE")
        address = os.path.basename(os.path.realpath(os.path.join(dir, CLASS, "vb_first", "device")))
        command("ip", "link", "set", "other", "down")
        view.port("vb_first", "state", "1: DOWN")
        view.port("vb_first", "phys_state", "3: Disabled")
        view.port("vb_first", "counters/link_downed", "1")
        command("ip", "link", "set", "other", "up")
        view.port("vb_first", "state", "4: ACTIVE")
        command("ip", "address", "add", "192.0.2.8/24", "dev", "first")
        wait_for("the second address", lambda: "0000:0000:0000:0000:0000:ffff:c000:0208" in [
            read(dir, CLASS, "vb_first/ports/1/gids", str(i)) for i in range(4)], True)
        command("ip", "address", "flush", "dev", "first", "scope", "global")
        wait_for("no IPv4 address", lambda: any("ffff:c000" in (read(dir, CLASS, "vb_first/ports/1/gids", n) or "")
                                                for n in listing(dir, CLASS, "vb_first/ports/1/gids") or []), False)
        command("ip", "address", "add", "192.0.2.9/24", "dev", "first")
        command("ip", "link", "set", "first", "down")
        command("ip", "link", "set", "first", "name", "Second.1")
        command("ip", "link", "set", "Second.1", "up")
        command("ip", "address", "replace", "192.0.2.9/24", "dev", "Second.1")
        view.port("vb_Second.1", "gids/0", "0000:0000:0000:0000:0000:ffff:c000:0209")
        wait_for("the same place in the PCI tree",
                 lambda: os.path.basename(os.path.realpath(os.path.join(dir, CLASS, "vb_Second.1", "device"))), address)
        wait_for("one name there", lambda: listing(dir, "sys/bus/pci/devices", address, "infiniband"), ["vb_Second.1"])
        wait_for("one interface there", lambda: listing(dir, "sys/bus/pci/devices", address, "net"), ["Second.1"])
        command("ip", "link", "delete", "Second.1")
        view.devices("vb_lo")
        wait_for("its place is empty", lambda: [n for n in listing(dir, "sys/devices", f"pci{address[:4]}:00") or []
                                                if n == address], [])


def many(verbatim, dir):
    """Two hundred interfaces, one with the longest name: each has an address of its own in the PCI tree."""
    count = 100
    with Followed(verbatim, dir):
        batch = "".join(f"link add a{i} type veth peer name {i:015d}\nlink set a{i} up\nlink set {i:015d} up\naddress add 10.1.{i}.1/24 dev a{i}\n"
                        f"address add 10.2.{i}.1/24 dev {i:015d}\n" for i in range(count))
        subprocess.run(["ip", "-batch", "-"], input=batch, text=True, check=True)
        wait_for("devices", lambda: len(listing(dir, CLASS) or []), 2 * count)
        wait_for("PCI devices", lambda: len([n for n in listing(dir, "sys/bus/pci/devices") if n >= "7662"]), 2 * count)
        buses = {name[:7] for name in listing(dir, "sys/bus/pci/devices") if name >= "7662"}
        if len(buses) != 2 * count:
            raise Failure(f"{len(buses)} buses for {2 * count} devices")
        command("sh", "-c", "ip -batch - <<END\n" + "".join(f"link delete a{i}\n" for i in range(count)) + "END\n")
        wait_for("no devices", lambda: listing(dir, CLASS), [])


def real_adapter(verbatim, dir):
    """A real adapter, and a real entry of our name, made in a mount namespace."""
    fake = os.path.join(dir, "machine")
    pci = "/sys/class/devices/pci0000:00/0000:00:1f.0"
    command("ip", "link", "set", "lo", "up")
    command("mount", "-t", "tmpfs", "none", "/sys/class")
    for name, text in {"mlx5_0": "4: ACTIVE", "vb_lo": "1: DOWN"}.items():
        os.makedirs(f"{pci}/infiniband/{name}/ports/1")
        with open(f"{pci}/infiniband/{name}/ports/1/state", "w", encoding="utf-8") as handle:
            handle.write(text + "\n")
        os.makedirs("/sys/class/infiniband", exist_ok=True)
        os.symlink(f"../devices/pci0000:00/0000:00:1f.0/infiniband/{name}", f"/sys/class/infiniband/{name}")
    before = {path: os.readlink(f"/sys/class/infiniband/{path}") for path in listing("/sys/class/infiniband")}
    command(verbatim, "view", fake)
    if listing(fake, CLASS) != ["mlx5_0", "vb_lo"]:
        raise Failure(f"entries {listing(fake, CLASS)}")
    for name, text in {"mlx5_0": "4: ACTIVE", "vb_lo": "1: DOWN"}.items():
        if os.readlink(f"{fake}/{CLASS}/{name}") != f"{pci}/infiniband/{name}" or read(fake, CLASS, name, "ports/1/state") != text:
            raise Failure(f"{name} leads to {os.readlink(f'{fake}/{CLASS}/{name}')}")
    real = {name for name in listing("/sys/bus/pci/devices") or []}
    if not real <= set(listing(fake, "sys/bus/pci/devices")):
        raise Failure("a PCI device of the machine is not shown")
    for name in real:
        if not os.path.isfile(os.path.join(fake, "sys/bus/pci/devices", name, "class")):
            raise Failure(f"PCI device {name} has no class")
    if before != {path: os.readlink(f"/sys/class/infiniband/{path}") for path in listing("/sys/class/infiniband")}:
        raise Failure("the machine's own entries have changed")
    os.unlink("/sys/class/infiniband/vb_lo")
    command(verbatim, "view", fake)
    if read(fake, CLASS, "vb_lo", "ports/1/state") != "4: ACTIVE":
        raise Failure("our device is not shown when the other one is gone")


CASES = {case.__name__: case for case in (interfaces, many, real_adapter)}


def inside(name, verbatim, dir):
    try:
        CASES[name](verbatim, dir)
    except Failure as fault:
        print(fault)
        return 1
    return 0


def in_namespaces(name, verbatim):
    # As the usual runtime directory is: in memory. On a disk two hundred devices take seconds.
    dir = tempfile.mkdtemp(prefix="verbatim-follow-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
    try:
        done = subprocess.run([*ENTER, sys.executable, os.path.abspath(__file__), INSIDE, name, verbatim, dir],
                              capture_output=True, text=True, check=False, timeout=180)
        if done.returncode:
            raise Failure(done.stdout + done.stderr)
    finally:
        shutil.rmtree(dir, ignore_errors=True)


def main():
    if sys.argv[1:2] == [INSIDE]:
        return inside(*sys.argv[2:])
    parser = argparse.ArgumentParser()
    parser.add_argument("--verbatim", required=True)
    parser.add_argument("--only")
    args = parser.parse_args()
    if not shutil.which("ip"):
        skip("no ip(8)")
    probe = subprocess.run([*ENTER, "true"], capture_output=True, text=True, check=False)
    if probe.returncode:
        skip(f"no namespaces for this user: {probe.stderr.strip()}")
    report = Report(args.only)
    for name, case in CASES.items():
        report.case(case.__doc__.split(":")[0].rstrip("."), lambda name=name: in_namespaces(name, os.path.abspath(args.verbatim)))
    return report.end()


if __name__ == "__main__":
    sys.exit(main())
