#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Usage: report.py --lib DIR --verbatim PROGRAM --planted PROGRAM [--write] [--only TEXT]
What a program that fails says at its end, and what one that works does not say. Programs with planted errors run as separate
processes; what they print is compared with printed.txt, but for numbers that differ from run to run (--write makes the file
anew). Then: silence where it is asked for, standard error that is closed, full or somebody else's, journals of living and
aborted processes, journals that are forged or too many. Prints one TAP line a case."""

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

HERE = os.path.dirname(os.path.abspath(__file__))
PRINTED = os.path.join(HERE, "printed.txt")
PATIENCE = 90
HEADING = """\
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# What the two ends of each case of planted.c print, and their exit status; numbers that differ from run to run are #.
"""
# Which of these the dead peer is told by depends on who notices first.
ENDED = re.compile(r"the peer's process has ended|nobody has the queue pair number of the destination|the peer did not answer")


class Failure(Exception):
    pass


class Report:
    def __init__(self, only):
        self.only, self.count, self.failed = only, 0, 0

    def case(self, name, run):
        if self.only and self.only not in name:
            return
        self.count += 1
        start = time.monotonic()
        try:
            run()
        except (Failure, AssertionError, subprocess.TimeoutExpired, OSError) as fault:
            self.failed += 1
            print(f"not ok {self.count} - {name}")
            for line in str(fault).splitlines():
                print(f"# {line}")
        else:
            print(f"ok {self.count} - {name}")
        print(f"# {time.monotonic() - start:.2f} s", flush=True)

    def end(self):
        print(f"1..{self.count}")
        return 1 if self.failed else 0


def plain(text):
    """Without what differs from run to run. A reason's code and its name stay."""
    text = re.sub(r"verbatim\[\d+\]", "verbatim[#]", text)
    text = re.sub(r"explain \d+", "explain #", text)
    text = re.sub(r"0x(?![1-7][0-9a-f]{2} [A-Z])[0-9a-f]+", "0x#", text)
    text = re.sub(r"process \d+", "process #", text)
    return re.sub(r"for this reason \d+ times", "for this reason # times", text)


class Bench:
    def __init__(self, args, folder):
        self.args, self.folder = args, folder
        self.run_dir = os.path.join(folder, "run")
        os.mkdir(self.run_dir, 0o700)
        self.env = {key: value for key, value in os.environ.items() if not key.startswith(("VERBATIM_", "VERBS_", "LD_"))}
        self.env.update(VERBATIM_REPORT="1", VERBATIM_RUNTIME_DIR=self.run_dir, LD_LIBRARY_PATH=args.lib, LC_ALL="C")

    def start(self, case, role, sock, env=None, before=(), **how):
        how.setdefault("stderr", subprocess.PIPE)
        return subprocess.Popen([*before, self.args.planted, case, role, str(sock.fileno())], env={**self.env, **(env or {})},
                                pass_fds=[sock.fileno()], stdin=subprocess.DEVNULL, **how)

    def pair(self, case, env=None):
        """(status, text) of the active end, and of the passive one where there is one."""
        ends = socket.socketpair()
        roles = ("active", "passive") if has_passive(case) else ("active",)
        processes = [self.start(case, role, end, env) for role, end in zip(roles, ends)]
        for end in ends:
            end.close()
        results = []
        try:
            for process in processes:
                _, text = process.communicate(timeout=PATIENCE)
                results.append((process.returncode, text.decode()))
        finally:
            for process in processes:
                process.kill()
                process.wait()
        return results

    def explain(self, *words):
        run = subprocess.run([self.args.verbatim, "explain", *words], env={**self.env, "LD_LIBRARY_PATH": ""}, capture_output=True,
                             timeout=PATIENCE, check=False)
        return run.returncode, run.stdout.decode(), run.stderr.decode()


def planted_cases():
    with open(os.path.join(HERE, "planted.c"), encoding="utf-8") as source:
        return re.findall(r'\{"([^"]+)", \w+, (\w+)\}', source.read())


def has_passive(case):
    return dict(planted_cases())[case] != "NULL"


def observed(bench, case):
    parts = []
    for role, (status, text) in zip(("active", "passive"), bench.pair(case)):
        parts.append(f"== {case}, {role}: {status}\n{plain(text)}")
    return "".join(parts)


def expected():
    with open(PRINTED, encoding="utf-8") as handle:
        text = handle.read()
    sections = {}
    for part in re.split(r"^(?=== )", text, flags=re.M)[1:]:
        sections.setdefault(part[3:part.index(",")], []).append(part)
    return {name: "".join(parts) for name, parts in sections.items()}


def says(bench, case, wanted):
    got = observed(bench, case)
    if case == "dead peer":
        if not ENDED.search(got) or not got.startswith("== dead peer, active: 1\n"):
            raise Failure(got)
    elif got != wanted.get(case):
        raise Failure(f"printed:\n{got}expected:\n{wanted.get(case)}")


def check(condition, text):
    if not condition:
        raise Failure(text)


def in_network(commands):
    """What to put before a program that is to run in a network namespace of its own; None: it may not be created here."""
    flags = ["--net"] if os.geteuid() == 0 else ["--map-root-user", "--net"]
    script = " && ".join(f'"$0" {command}' for command in commands) + ' && exec "$@"'
    inside = ["unshare", *flags, "--", "sh", "-c", script, shutil.which("ip") or "/usr/sbin/ip"]
    return inside if subprocess.run([*inside, "true"], capture_output=True, check=False).returncode == 0 else None


def large_mtu(bench):
    """Towards another host, behind an interface of the usual MTU, 4096 is refused, with what to ask for instead."""
    inside = in_network(["link set lo up", "link add wire0 type dummy", "addr add 192.0.2.7/24 dev wire0", "link set wire0 mtu 1500 up"])
    if not inside:
        return
    process, mine = alone(bench, "large mtu", before=inside, env={"VERBATIM_LINK": "udp", "VERBATIM_DEVICES": "vb_wire0"})
    _, text = process.communicate(timeout=PATIENCE)
    mine.close()
    check(process.returncode == 1 and b"packets of path MTU 4096" in text and b"wire0 carries 1500" in text and b"0x113 PATH_MTU: Give active_mtu" in text,
          f"status {process.returncode}:\n{text.decode()}")
    said = bench.explain(str(process.pid))[1]
    check("0x113 PATH_MTU" in said and "IBV_MTU_4096" in said, said)


def nowhere(bench):
    """In a network namespace without a route the cause is known, and not only that nobody answered."""
    inside = in_network(["link set lo up"])
    if not inside:
        return
    process, mine = alone(bench, "nowhere", before=inside)
    _, text = process.communicate(timeout=PATIENCE)
    mine.close()
    lines = plain(text.decode()).splitlines()
    check(process.returncode == 1 and len(lines) == 4 and "the peer did not answer" in lines[0] and "Network is unreachable" in lines[1] and
          "0x60c DROP_UNREACHABLE: " in lines[2], f"status {process.returncode}:\n{text.decode()}")


def silent(bench, env):
    status, text = bench.pair("skipped state", env)[0]
    check(status == 1 and text == "", f"status {status}:\n{text}")


def told_always(bench):
    status, text = bench.pair("fork after failure", {"VERBATIM_REPORT": "2"})[0]
    check(status == 0 and "QP_TRANSITION" in text, f"status {status}:\n{text}")
    check(len(set(re.findall(r"verbatim\[(\d+)\]", text))) == 1, f"the child told what failed in its parent:\n{text}")


def alone(bench, case, **how):
    mine, its = socket.socketpair()
    process = bench.start(case, "active", its, **how)
    its.close()
    return process, mine


def full_pipe(bench):
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    try:
        while True:
            os.write(writer, b"x" * 4096)
    except BlockingIOError:
        os.set_blocking(writer, True)
    process, mine = alone(bench, "skipped state", stderr=writer)
    status = process.wait(PATIENCE)
    mine.close()
    os.close(writer)
    os.close(reader)
    check(status == 1, f"status {status}")


def no_reader(bench):
    reader, writer = os.pipe()
    os.close(reader)
    process, mine = alone(bench, "skipped state", stderr=writer,
                          preexec_fn=lambda: signal.signal(signal.SIGPIPE, signal.SIG_DFL))
    status = process.wait(PATIENCE)
    mine.close()
    os.close(writer)
    check(status == 1, f"status {status}: a SIGPIPE is -13")


def to_file(bench):
    path = os.path.join(bench.folder, "stderr")
    with open(path, "w", encoding="utf-8") as handle:
        handle.write("before\n")
        handle.flush()
        process, mine = alone(bench, "skipped state", stderr=handle)
        process.wait(PATIENCE)
    mine.close()
    with open(path, encoding="utf-8") as handle:
        text = handle.read()
    check(text.startswith("before\nverbatim["), text)


def to_socket(bench):
    ours, theirs = socket.socketpair()
    process, mine = alone(bench, "skipped state", stderr=theirs)
    theirs.close()
    process.wait(PATIENCE)
    mine.close()
    text = ours.recv(4096).decode()
    ours.close()
    check("QP_TRANSITION" in text, text)


def no_locked_memory(bench):
    ends = socket.socketpair()
    limit = lambda: resource.setrlimit(resource.RLIMIT_MEMLOCK, (0, 0))  # noqa: E731
    processes = [bench.start("transfer", role, end, preexec_fn=limit) for role, end in zip(("active", "passive"), ends)]
    for end in ends:
        end.close()
    for process in processes:
        _, text = process.communicate(timeout=PATIENCE)
        check(process.returncode == 0 and not text, f"status {process.returncode}:\n{text.decode()}")


def small_files(bench):
    """A limit of the size of files must not end the process that would write a journal."""
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))  # noqa: E731
    process, mine = alone(bench, "list", env={"VERBATIM_DEVICES": "none"}, preexec_fn=limit)
    _, text = process.communicate(timeout=PATIENCE)
    mine.close()
    check(process.returncode == 1 and b"NO_DEVICE" in text and b"explain" not in text, f"{process.returncode}:\n{text.decode()}")


def no_place(bench):
    status, text = bench.pair("skipped state", {"VERBATIM_RUNTIME_DIR": "/proc/none"})[0]
    check(status == 1 and "QP_TRANSITION" in text and "explain" not in text, f"status {status}:\n{text}")


def aborted(bench):
    mine, its = socket.socketpair()
    passive = bench.start("aborts", "passive", mine)
    active = bench.start("aborts", "active", its, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (0, 0)))
    mine.close()
    its.close()
    _, text = active.communicate(timeout=PATIENCE)
    passive.communicate(timeout=PATIENCE)
    check(active.returncode == -signal.SIGABRT and not text, f"status {active.returncode}:\n{text.decode()}")
    code, out, err = bench.explain(str(active.pid))
    check(code == 0 and "by a signal" in out and "0x301 LKEY_UNKNOWN" in out and "sge[0]" in out and "usual cause" in out,
          f"status {code}:\n{out}{err}")


def living(bench):
    process, mine = alone(bench, "stays", stdout=subprocess.PIPE)
    process.stdout.read(1)
    code, out, err = bench.explain(str(process.pid))
    code_all, out_all, _ = bench.explain()
    mine.close()
    process.communicate(timeout=PATIENCE)
    check(code == 0 and "(planted) runs" in out and "0x202 QP_TRANSITION" in out, f"status {code}:\n{out}{err}")
    check(code_all == 0 and f"{process.pid} (planted; runs)" in out_all, out_all)
    code, out, err = bench.explain(str(process.pid))
    check(code == 0 and "has ended with status 1" in out, f"status {code}:\n{out}{err}")


def both_ends(bench):
    """What the responder knows is told with the completion of the requester."""
    ends = socket.socketpair()
    processes = [bench.start("range", role, end) for role, end in zip(("active", "passive"), ends)]
    for end in ends:
        end.close()
    for process in processes:
        process.communicate(timeout=PATIENCE)
    code, out, err = bench.explain(str(processes[0].pid))
    check(code == 0 and re.search(rf"the other end, process {processes[1].pid} \(planted\), says: 0x403 RKEY_RANGE\n +qp 0x", out),
          f"status {code}:\n{out}{err}")


def hanging(bench):
    process, mine = alone(bench, "hammers", stdout=subprocess.PIPE)
    process.stdout.read(1)
    code, out, err = bench.explain(str(process.pid))
    mine.close()
    process.communicate(timeout=PATIENCE)
    check(code == 0 and "perhaps a probe: 0x205 QUEUE_FULL" in out and "times by then" in out, f"status {code}:\n{out}{err}")


def nothing_known(bench):
    code, out, err = bench.explain(str(os.getpid()))  # a small number may be a code, too
    check(code == (0 if out else 1) and "has no journal" in err, err)
    code, _, err = bench.explain("4194305")
    check(code == 1 and "no process" in err, err)


def also_a_code(bench):
    """In a container processes have numbers that are codes and errnos, too: all that the number can be is told."""
    process, mine = alone(bench, "stays", stdout=subprocess.PIPE)
    process.stdout.read(1)
    mine.close()
    process.communicate(timeout=PATIENCE)
    folder = os.path.join(bench.run_dir, "failures")
    with open(os.path.join(folder, str(process.pid)), "rb") as handle:
        journal = handle.read()
    for number, meaning in ((1027, "0x403 RKEY_RANGE"), (12, "ENOMEM")):
        path = os.path.join(folder, str(number))
        with open(path, "wb") as handle:
            handle.write(journal[:24] + number.to_bytes(4, "little") + journal[28:])
        code, out, err = bench.explain(str(number))
        os.unlink(path)
        check(code == 0 and meaning in out and "(planted)" in out and "0x202 QP_TRANSITION" in out, f"{number}: status {code}:\n{out}{err}")


def ended_pids(count):
    """Numbers of processes that are no more."""
    pids = set()
    while len(pids) < count:
        process = subprocess.Popen(["true"])
        process.wait()
        pids.add(process.pid)
    return list(pids)


def forged(bench):
    folder = os.path.join(bench.run_dir, "failures")
    os.makedirs(folder, 0o700, exist_ok=True)
    magic = (0x316c6e7275426256).to_bytes(8, "little")
    pids = ended_pids(5)
    paths = [os.path.join(folder, str(pid)) for pid in pids]
    with open(paths[0], "wb") as handle:
        handle.write(magic)
    os.mkfifo(paths[1])
    os.symlink("/etc/passwd", paths[2])
    header = magic + bytes(16) + pids[3].to_bytes(4, "little") + (1 << 31).to_bytes(4, "little") + b"\x1b[31m" + b"n" * 475
    slot = b"".join([(1).to_bytes(8, "little"), b"\xff" * 8, b"\xff" * 8, b"\x01\x04\x00\x00", b"\x02\x00", b"\xff\xff", b"\xff" * 8,
                     b"\x1b]0;x\x07%s%n" + b"A" * 461])
    with open(paths[3], "wb") as handle:
        handle.write(header + slot[:512] * 32)
    with open(paths[4], "wb") as handle:
        handle.write(os.urandom(512 * 33))
    for pid in pids:
        code, out, err = bench.explain(str(pid))
        check(code in (0, 1) and "\x1b" not in out + err and "\x07" not in out + err, f"{pid}: status {code}:\n{out!r}{err!r}")
        check(pid == pids[3] or f"Process {pid} " not in out, f"{pid}: a file that is no journal was read:\n{out}")
    code, out, err = bench.explain()
    check(code == 0 and "\x1b" not in out + err, f"status {code}:\n{out!r}{err!r}")
    for path in paths:
        os.unlink(path)


def bounded(bench):
    folder = os.path.join(bench.run_dir, "failures")
    os.makedirs(folder, 0o700, exist_ok=True)
    # Above the largest number of a process (PID_MAX_LIMIT), so that none of them lives.
    for number in range(300):
        with open(os.path.join(folder, str(4200000 + number)), "wb") as handle:
            handle.write(b"x")
    bench.pair("skipped state")
    left = len(os.listdir(folder))
    check(left < 20, f"{left} journals of ended processes are left")


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--lib", required=True)
    parser.add_argument("--verbatim", required=True)
    parser.add_argument("--planted", required=True)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--only")
    args = parser.parse_args()
    report = Report(args.only)
    folder = tempfile.mkdtemp(prefix="verbatim-hour-")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        bench = Bench(args, folder)
        skipped = ("stays", "hammers", "nowhere", "large mtu")
        if args.write:
            with open(PRINTED, "w", encoding="utf-8") as handle:
                handle.write(HEADING + "".join(observed(bench, case) for case, _ in planted_cases() if case not in skipped))
            return 0
        wanted = expected()
        for case, _ in planted_cases():
            if case not in skipped:
                report.case(f"planted: {case}", lambda case=case: says(bench, case, wanted))
        report.case("no device: the list is empty and told", lambda: check(
            "0x110 NO_DEVICE" in bench.pair("list", {"VERBATIM_DEVICES": "none"})[0][1], "not told"))
        report.case("a path MTU that the interface does not carry: told, and what to ask for", lambda: large_mtu(bench))
        report.case("no route: told with the completion", lambda: nowhere(bench))
        report.case("silent without VERBATIM_REPORT", lambda: silent(bench, {"VERBATIM_REPORT": ""}))
        report.case("silent with VERBATIM_LOG=none", lambda: silent(bench, {"VERBATIM_LOG": "none"}))
        report.case("VERBATIM_REPORT=2 tells at status 0, the child of a fork does not", lambda: told_always(bench))
        report.case("standard error is a full pipe: no wait", lambda: full_pipe(bench))
        report.case("standard error is a pipe without a reader: no SIGPIPE", lambda: no_reader(bench))
        report.case("standard error is a file: the report goes to its end", lambda: to_file(bench))
        report.case("standard error is a socket", lambda: to_socket(bench))
        report.case("no locked memory is needed, and nothing is said", lambda: no_locked_memory(bench))
        report.case("a limit of file sizes: no journal, but a report", lambda: small_files(bench))
        report.case("no runtime directory: no journal, but a report", lambda: no_place(bench))
        report.case("explain: a process that was aborted", lambda: aborted(bench))
        report.case("explain: a process that lives, and then has ended", lambda: living(bench))
        report.case("explain: what the other end knows", lambda: both_ends(bench))
        report.case("explain: a process that posts to a full queue for ever", lambda: hanging(bench))
        report.case("explain: processes without a journal", lambda: nothing_known(bench))
        report.case("explain: a process whose number is a code, too", lambda: also_a_code(bench))
        report.case("explain: forged journals", lambda: forged(bench))
        report.case("journals of ended processes are removed", lambda: bounded(bench))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return report.end()


sys.exit(main())
