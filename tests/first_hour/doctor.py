#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Usage: doctor.py --lib DIR --verbatim PROGRAM --without PROGRAM [--only TEXT]
`verbatim doctor` with one trouble at a time, made on purpose in a network namespace of its own: what it names, its cure, its exit
status; and without trouble. As root the first and the last cases are run as an ordinary user, too. Prints one TAP line a case."""

import argparse
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

SKIP = 77
MARK = "VB_DOCTOR_NAMESPACE"
ORDINARY = 65532
PATIENCE = 150
ALL_WELL = r"All is well\.\n$"


class Failure(Exception):
    pass


def enter():
    """Starts this program again in network and mount namespaces of its own, which end with its last process."""
    if os.environ.get(MARK) == "1":
        return
    flags = ["--net", "--mount"] if os.geteuid() == 0 else ["--map-root-user", "--net", "--mount"]
    if subprocess.run(["unshare", *flags, "true"], capture_output=True, check=False).returncode != 0:
        print("a network namespace may not be created here (unshare is refused)", file=sys.stderr)
        sys.exit(SKIP)
    os.environ[MARK] = "1"
    os.environ["VB_DOCTOR_ROOT"] = "1" if os.geteuid() == 0 else "0"
    os.execvp("unshare", ["unshare", *flags, sys.executable, *sys.argv])


def ip(*words):
    subprocess.run([shutil.which("ip") or "/usr/sbin/ip", *words], check=True)


class Doctor:
    def __init__(self, args, folder):
        self.folder = folder
        os.chmod(folder, 0o755)
        # Where an ordinary user can read them.
        self.program = shutil.copy(args.verbatim, folder)
        self.without = shutil.copy(args.without, folder)
        lib = os.path.join(folder, "lib")
        os.mkdir(lib)
        for name in os.listdir(args.lib):
            path = os.path.join(args.lib, name)
            if ".so" in name and not os.path.isdir(path) and not name.endswith(".symbols"):
                shutil.copy(path, lib, follow_symlinks=False)
        self.env = {key: value for key, value in os.environ.items()
                    if not key.startswith(("VERBATIM_", "VERBS_", "LD_")) and key not in ("XDG_RUNTIME_DIR", "TMPDIR")}
        self.env["LC_ALL"] = "C"
        self.run_dirs = {}

    def run_dir(self, user):
        if user not in self.run_dirs:
            self.run_dirs[user] = tempfile.mkdtemp(prefix="run-", dir=self.folder)
            if user:
                os.chown(self.run_dirs[user], user, user)
        return self.run_dirs[user]

    def run(self, *words, env=None, before=(), limit=None, ordinary=False):
        user = ORDINARY if ordinary else 0
        argv = [*before, self.program, "doctor", *words]
        if ordinary:
            argv = ["setpriv", f"--reuid={ORDINARY}", f"--regid={ORDINARY}", "--clear-groups", "--inh-caps=-all", *argv]
        run = subprocess.run(argv, env={**self.env, "VERBATIM_RUNTIME_DIR": self.run_dir(user), **(env or {})}, cwd="/",
                             capture_output=True, text=True, timeout=PATIENCE, check=False,
                             preexec_fn=(lambda: resource.setrlimit(*limit)) if limit else None)
        return run.returncode, run.stdout + run.stderr


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--lib", required=True)
    parser.add_argument("--verbatim", required=True)
    parser.add_argument("--without", required=True)
    parser.add_argument("--only")
    args = parser.parse_args()
    enter()
    really_root = os.environ["VB_DOCTOR_ROOT"] == "1"
    count, failed = 0, 0
    folder = tempfile.mkdtemp(prefix="verbatim-doctor-")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))

    def case(name, wanted, *words, status=1, absent=(), **how):
        """wanted: patterns that the output has, each followed by a cure where it begins with PROBLEM."""
        nonlocal count, failed
        if args.only and args.only not in name:
            return
        count += 1
        start = time.monotonic()
        try:
            code, text = doctor.run(*words, **how)
        except subprocess.TimeoutExpired:
            code, text = -1, "it did not end"
        good = code == status and not any(re.search(pattern, text) for pattern in absent)
        for pattern in wanted:
            found = re.search(pattern + (r".*\n         cure: .+\n" if pattern.startswith("PROBLEM") else ""), text)
            good = good and found is not None
        failed += not good
        print(f"{'ok' if good else 'not ok'} {count} - {name}")
        if not good:
            print(f"# status {code}, wanted {status} and {wanted}\n" + "".join(f"# {line}\n" for line in text.splitlines()), end="")
        print(f"# {time.monotonic() - start:.2f} s", flush=True)

    try:
        doctor = Doctor(args, folder)
        users = [("", {})] + ([(", ordinary user", {"ordinary": True})] if really_root else [])
        for who, how in users:
            case(f"lo is down{who}", [r"PROBLEM  interfaces: none is up", r"PROBLEM  devices: none is listed",
                                      r"transfer through shared memory: there is no device", r"cure: ip link set lo up"], **how)
        ip("link", "set", "lo", "up")
        for who, how in users:
            case(f"all is well{who}", [r"ok       transfer through shared memory: SEND, WRITE and READ",
                                       r"ok       transfer by UDP: SEND, WRITE and READ", ALL_WELL], status=0, absent=["PROBLEM"], **how)
        case("packets by UDP are lost", [r"ok       transfer through shared memory", r"PROBLEM  transfer by UDP: SEND: transport retries exceeded"],
             env={"VERBATIM_FAULT": "drop=100%"})
        case("no device for VERBATIM_DEVICES", [r"PROBLEM  devices: none is listed, for VERBATIM_DEVICES=nothing"],
             env={"VERBATIM_DEVICES": "nothing"})
        case("an index of the GID table that another adapter has", [
            r"PROBLEM  device vb_\S+: NCCL_IB_GID_INDEX=250, and that place of its GID table is empty",
            r"cure: unset NCCL_IB_GID_INDEX, or set it to an index that `verbatim devices` lists \(0\)"], env={"NCCL_IB_GID_INDEX": "250"})
        case("few descriptors", [r"PROBLEM  limits: 40 open descriptors"], limit=(resource.RLIMIT_NOFILE, (40, 40)))
        case("not many descriptors", [r"note     limits: 300 open descriptors", ALL_WELL], status=0, limit=(resource.RLIMIT_NOFILE, (300, 300)))
        case("small files", [r"PROBLEM  limits: files of at most 65536 bytes", r"PROBLEM  system calls: shared memory"],
             limit=(resource.RLIMIT_FSIZE, (65536, 65536)))
        case("no locked memory", [r"note     limits: 0 bytes may be locked", ALL_WELL], status=0, limit=(resource.RLIMIT_MEMLOCK, (0, 0)))
        case("memfd_create is refused", [r"PROBLEM  system calls: shared memory \(memfd_create, seals\): Operation not permitted",
                                         r"cure: allow it in the seccomp profile"], before=[doctor.without, "memfd_create", "eperm"])
        case("memfd_create kills", [r"PROBLEM  system calls: shared memory \(memfd_create, seals\): the process is killed for it",
                                    r"PROBLEM  transfer"], before=[doctor.without, "memfd_create", "kill"])
        case("a call that is not needed is refused", [r"note     system calls: pidfd_open: Operation not permitted", r"ok       transfer by UDP"],
             status=0, before=[doctor.without, "pidfd_open", "eperm"])
        case("no runtime directory", [r"note     runtime directory: none can be used", ALL_WELL], status=0,
             env={"VERBATIM_RUNTIME_DIR": "/proc/none"})
        holder = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        holder.bind(("0.0.0.0", 4791))
        case("the UDP port is held", [rf"PROBLEM  UDP port 4791: held by process {os.getpid()} ", r"ok       transfer through shared memory",
                                      r"PROBLEM  transfer by UDP: ibv_modify_qp to RTR: Address already in use"])
        holder.close()
        place = "/sys/class/infiniband" if os.path.isdir("/sys/class/infiniband") else "/sys/class"
        if subprocess.run(["mount", "-t", "tmpfs", "none", place], capture_output=True, check=False).returncode == 0:
            os.makedirs("/sys/class/infiniband/mlx5_0")
            case("an adapter of another maker", [r"note     other adapters: mlx5_0;", ALL_WELL], status=0)
            subprocess.run(["umount", place], check=True)
        case("no such program", [r"PROBLEM  program no-such-program: No such file"], "no-such-program")
        case("a script, with arguments that are not the doctor's", [r"note     program /.*: it is not linked with libibverbs"], "--",
             script(folder), "--help", status=0)
        if shutil.which("ibv_devinfo"):
            case("a program of libibverbs", [r"ok       program \S+/ibv_devinfo: without `verbatim run` it loads \S+libibverbs\.so\.1", ALL_WELL],
                 "ibv_devinfo", status=0)
        if shutil.which("rping"):
            case("a program of librdmacm", [r"note     program \S+/rping: without `verbatim run` its connections are made by \S+librdmacm\.so\.1.*\n"
                                            r"         cure: start it by `verbatim run`", ALL_WELL], "rping", status=0)
            case("a program of librdmacm, which finds this one", [r"ok       program \S+/rping: its connections \(librdmacm\) are made by \S+"],
                 "rping", status=0, env={"LD_LIBRARY_PATH": os.path.join(folder, "lib")})
        for name, flags, patterns in (("a static program", ["-static"], [r"note     program \S+: it is static"]),
                                      ("a program with the address sanitizer", ["-fsanitize=address"], [r"note     program \S+: it is built with the address"])):
            path = compiled(folder, flags)
            if path:
                case(name, patterns, path, status=0)
        path = compiled(folder, [])
        if path and really_root:
            os.chown(path, 0, 0)
            os.chmod(path, 0o4755)
            case("a program with more rights", [r"PROBLEM  program \S+: it gets more rights than you have"], path, ordinary=True)
        if subprocess.run([shutil.which("ip") or "/usr/sbin/ip", "link", "add", "vbdown", "type", "veth", "peer", "name", "vbpeer"],
                          capture_output=True, check=False).returncode == 0:
            ip("address", "add", "198.51.100.1/24", "dev", "vbdown")
            ip("link", "set", "vbdown", "up")
            case("a port without carrier", [r"note     interface vbdown: no carrier", r"note     device vb_vbdown: its port is down",
                                            r"ok       device vb_lo"], status=0)
            ip("link", "delete", "vbdown")
        ip("link", "set", "lo", "mtu", "300")
        case("a small MTU", [r"PROBLEM  interface lo: MTU 300 is too small"])
        ip("link", "set", "lo", "mtu", "65536")
        case("all is well again", [ALL_WELL], status=0)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(f"1..{count}")
    return 1 if failed else 0


def script(folder):
    path = os.path.join(folder, "script")
    with open(path, "w", encoding="utf-8") as handle:
        handle.write("#!/bin/sh\nexit 9\n")
    os.chmod(path, 0o755)
    return path


def compiled(folder, flags):
    """A small program built so, or None where it cannot be built here."""
    path = os.path.join(folder, "program" + "".join(flags))
    run = subprocess.run(["cc", "-x", "c", "-o", path, *flags, "-"], input="int main(void) { return 9; }\n", text=True, capture_output=True,
                         check=False) if shutil.which("cc") else None
    return path if run and run.returncode == 0 else None


sys.exit(main())
