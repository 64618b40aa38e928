#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Usage: examples.py --lib DIR --verbatim PROGRAM --examples DIR [--only REGEX]
Promise: the commands in examples/ do what is said beside them, where containers are replaced by namespaces and a root of their own;
`verbatim view --cdi` obeys the rules of the Container Device Interface, and what it asks for makes the devices visible.
Prints one TAP line a case; exits 1 when one failed, 77 (reason on the last line of standard error) where there are no namespaces."""

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True

from place import Failure, Place, Report, Skip, skip, users  # noqa: E402

INSIDE = "--inside"
PARTS = ("bin", "lib", "lib64", "usr", "etc", "sbin")
PREFIX = "/opt/verbatim"

# A container for the poor: a root, a PID, a mount and a network namespace, the mounts of "$1", and the command behind it as one argument.
CONTAINER = r"""
root=$1; shift
mount -t tmpfs -o mode=755 root "$root"
for part in %s; do
    [ -L "/$part" ] && cp -P "/$part" "$root/$part" && continue
    [ -d "/$part" ] && mkdir "$root/$part" && mount --rbind "/$part" "$root/$part"
done
mkdir -m 1777 "$root/tmp"; mkdir "$root/proc" "$root/sys" "$root/dev" "$root/run"
mount -t proc proc "$root/proc"; mount --rbind /sys "$root/sys"
for node in null zero urandom; do touch "$root/dev/$node"; mount --bind "/dev/$node" "$root/dev/$node"; done
ln -s /proc/self/fd "$root/dev/fd"; mkdir -m 1777 "$root/dev/shm"
""" % " ".join(PARTS)


def read(path):
    with open(path, encoding="utf-8") as handle:
        return handle.read()


def tool(name):
    if not shutil.which(name):
        raise Skip(f"no {name} here")
    return name


def compose_commands(text):
    """{service: [word...]}"""
    return {name: shlex.split(command) for name, command in re.findall(r"^  (\w+):\n(?:    .*\n)*?    command: (.*)$", text, re.M)}


def entrypoint(text):
    return json.loads(re.search(r"^ENTRYPOINT (.*)$", text, re.M).group(1))


def script_lines(text):
    return re.findall(r"^ *(?:run: |- )(verbatim run .*)$", text, re.M)


class Installed:
    """An installation in a folder, made of the build."""

    def __init__(self, place):
        self.dir = os.path.join(place.dir, "opt")
        os.makedirs(os.path.join(self.dir, "bin/lib"), exist_ok=True)
        shutil.copy(place.verbatim, os.path.join(self.dir, "bin"))
        for entry in os.listdir(place.lib):
            path = os.path.join(place.lib, entry)
            if ".so" in entry and not os.path.isdir(path) and not entry.endswith(".symbols"):
                shutil.copy(path, os.path.join(self.dir, "bin/lib"), follow_symlinks=False)
        os.chmod(self.dir, 0o755)


def in_root(installed, command, hosts=""):
    """The shell words that run a command (a string) in a root of its own, where verbatim is installed."""
    script = CONTAINER + f"""
mkdir -p "$root{PREFIX}"; mount --rbind {shlex.quote(installed)} "$root{PREFIX}"
[ -z {shlex.quote(hosts)} ] || {{ printf '%s\\n' {shlex.quote(hosts)} > "$root/tmp/hosts"; mount --bind "$root/tmp/hosts" "$root/etc/hosts"; }}
exec chroot "$root" /usr/bin/env -i PATH=/usr/bin:/bin:/usr/sbin:/sbin HOME=/tmp sh -c {shlex.quote(command)}
"""
    return ["sh", "-ec", script, "container", "/mnt"]


def compose(examples, installed):
    """Two containers with an interface eth0 each; runs inside a namespace of its own."""
    commands = compose_commands(read(os.path.join(examples, "compose.yaml")))
    if set(commands) != {"server", "client"}:
        raise Failure(f"services {set(commands)}")
    entry = entrypoint(read(os.path.join(examples, "Containerfile")))
    hosts = "192.0.2.1 server\n192.0.2.2 client"
    running = {}
    for name, words in commands.items():
        line = " ".join(shlex.quote(word) for word in entry + words)
        ready = "read go && ip link set lo up && exec \"$@\""
        running[name] = subprocess.Popen(["unshare", "-nmpf", "--kill-child", "sh", "-c", ready, "sh", *in_root(installed, line, hosts)],
                                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        inner = {name: wait_child(process.pid) for name, process in running.items()}
        subprocess.run(["ip", "link", "add", "eth0", "netns", str(inner["server"]), "type", "veth", "peer", "name", "eth0", "netns",
                        str(inner["client"])], check=True)
        for number, name in enumerate(("server", "client"), 1):
            enter = ["nsenter", "-t", str(inner[name]), "-n", "ip"]
            subprocess.run([*enter, "address", "add", f"192.0.2.{number}/24", "dev", "eth0"], check=True)
            subprocess.run([*enter, "link", "set", "eth0", "up"], check=True)
        for name in ("server", "client"):
            running[name].stdin.write("go\n")
            running[name].stdin.flush()
        out = {name: process.communicate(timeout=90)[0] for name, process in running.items()}
    finally:
        for process in running.values():
            process.kill()
    for name, process in running.items():
        if process.returncode:
            raise Failure(f"{name}: exit status {process.returncode}\n{out[name]}")
    if not re.search(r"^ *65536 +200 ", out["client"], re.M) or "vb_eth0" not in out["client"]:
        raise Failure(f"client:\n{out['client']}")


def wait_child(pid):
    """The process in the new namespaces: unshare's child."""
    while True:
        children = read(f"/proc/{pid}/task/{pid}/children").split()
        if children:
            try:
                if os.readlink(f"/proc/{children[0]}/ns/net") != os.readlink("/proc/self/ns/net"):
                    return int(children[0])
            except OSError:
                pass


def lines(examples, installed, file):
    """The commands of a CI file, in one root."""
    found = script_lines(read(os.path.join(examples, file)))
    if len(found) < 2:
        raise Failure(f"{file}: commands {found}")
    for line in found:
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        done = subprocess.run(["unshare", "-mpf", "--kill-child", *in_root(installed, f"PATH={PREFIX}/bin:$PATH; {line}")],
                              capture_output=True, text=True, timeout=90, check=False)
        if done.returncode or "vb_lo" not in done.stdout:
            raise Failure(f"{line}: exit status {done.returncode}\n{done.stdout}{done.stderr}")


def expect(condition, what):
    if not condition:
        raise Failure(what)


def check_edits(edits, whole):
    expect(set(edits) <= {"env", "deviceNodes", "mounts", "hooks", "additionalGIDs", "intelRdt"} and edits, f"edits {set(edits)}")
    for variable in edits.get("env", []):
        expect(re.match(r"^[A-Za-z_][A-Za-z0-9_]*=", variable), f"env {variable}")
    for node in edits.get("deviceNodes", []):
        expect(set(node) <= {"path", "hostPath", "type", "major", "minor", "fileMode", "permissions", "uid", "gid"}, f"node {node}")
        expect(node["path"].startswith("/dev/") and os.path.exists(node["hostPath"]), f"node {node}")
        expect(node.get("type", "c") in "bcup" and re.match(r"^[rwm]+$", node.get("permissions", "rwm")), f"node {node}")
    for mount in edits.get("mounts", []):
        expect(set(mount) <= {"hostPath", "containerPath", "options", "type"}, f"mount {mount}")
        expect(os.path.exists(mount["hostPath"]) and mount["containerPath"].startswith("/"), f"mount {mount}")
        expect(all(isinstance(option, str) for option in mount["options"]), f"mount {mount}")
    expect(whole or edits.get("mounts"), "nothing is mounted")


def specification(text):
    """The rules of the CDI specification 0.6 for what is used here."""
    spec = json.loads(text)
    expect(set(spec) <= {"cdiVersion", "kind", "devices", "containerEdits", "annotations"}, f"members {set(spec)}")
    expect(re.match(r"^0\.[5-8]\.0$|^1\.\d+\.\d+$", spec["cdiVersion"]), f"version {spec['cdiVersion']}")
    vendor, _, kind = spec["kind"].partition("/")
    expect(re.match(r"^[A-Za-z]([A-Za-z0-9_.-]*[A-Za-z0-9])?$", vendor) and re.match(r"^[A-Za-z]([A-Za-z0-9_-]*[A-Za-z0-9])?$", kind),
           f"kind {spec['kind']}")
    names = [device["name"] for device in spec["devices"]]
    expect(len(set(names)) == len(names) and names, f"names {names}")
    for device in spec["devices"]:
        expect(set(device) <= {"name", "containerEdits", "annotations"}, f"device {device}")
        expect(re.match(r"^[A-Za-z0-9]([A-Za-z0-9_.:-]*[A-Za-z0-9])?$", device["name"]), f"name {device['name']}")
        check_edits(device["containerEdits"], False)
    return {device["name"]: device["containerEdits"] for device in spec["devices"]}


def apply(edits, command):
    """What a container engine does with the edits, before it starts the command."""
    steps = CONTAINER
    for node in edits.get("deviceNodes", []):
        path = f'"$root"{shlex.quote(node["path"])}'
        steps += f'mkdir -p "$(dirname {path})"; touch {path}; mount --bind {shlex.quote(node["hostPath"])} {path}\n'
    for mount in edits.get("mounts", []):
        host, inside = shlex.quote(mount["hostPath"]), f'"$root"{shlex.quote(mount["containerPath"])}'
        steps += f'if [ -d {host} ]; then mkdir -p {inside}; else mkdir -p "$(dirname {inside})"; touch {inside}; fi\n'
        steps += f"mount --rbind {host} {inside}\n"
    env = " ".join(shlex.quote(variable) for variable in edits.get("env", []))
    steps += f'exec chroot "$root" /usr/bin/env -i PATH=/usr/bin:/bin HOME=/tmp {env} sh -ec {shlex.quote(command)}\n'
    return ["unshare", "-mpf", "--kill-child", "sh", "-ec", steps, "container", "/mnt"]


def cdi(_examples, installed):
    """The specification of an installation, checked, and applied."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    subprocess.run(["ip", "link", "add", "odd@na,me+", "type", "veth", "peer", "name", "x"], check=False)
    for name in ("odd@na,me+", "x"):
        subprocess.run(["ip", "link", "set", name, "up"], check=False)
    subprocess.run(["ip", "address", "add", "192.0.2.5/24", "dev", "odd@na,me+"], check=False)
    view = tempfile.mkdtemp(prefix="verbatim-cdi-")
    try:
        verbatim = os.path.join(installed, "bin/verbatim")
        devices = specification(subprocess.run([verbatim, "view", "--cdi", view], check=True, capture_output=True, text=True).stdout)
        nodes = sorted(node["path"] for node in devices["all"]["deviceNodes"])
        expect(nodes == sorted(f"/dev/infiniband/{name}" for name in os.listdir(f"{view}/dev/infiniband")), f"nodes {nodes}")
        for command, device in (("test -c /dev/infiniband/uverbs_odd@na,me+; cat /sys/class/infiniband/*/ports/1/state; ibv_devinfo", "all"),
                                (f"{verbatim} run ibv_devinfo", "run")):
            done = subprocess.run(apply(devices[device], command), capture_output=True, text=True, timeout=60, check=False)
            if done.returncode or "PORT_ACTIVE" not in done.stdout or (device == "all" and "4: ACTIVE" not in done.stdout):
                raise Failure(f"{device}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
    finally:
        shutil.rmtree(view, ignore_errors=True)


CASES = {
    "compose.yaml, between two containers": compose,
    "github-actions.yml": lambda examples, installed: lines(examples, installed, "github-actions.yml"),
    "gitlab-ci.yml": lambda examples, installed: lines(examples, installed, "gitlab-ci.yml"),
    "CDI": cdi,
}


def inside(name, examples, installed):
    try:
        CASES[name](examples, installed)
    except (Failure, subprocess.SubprocessError) as fault:
        print(fault)
        return 1
    return 0


def main():
    if sys.argv[1:2] == [INSIDE]:
        return inside(*sys.argv[2:])
    parser = argparse.ArgumentParser()
    parser.add_argument("--lib", required=True)
    parser.add_argument("--verbatim", required=True)
    parser.add_argument("--examples", required=True)
    parser.add_argument("--only")
    args = parser.parse_args()
    enter = ["unshare", "-rnmpf", "--mount-proc", "--kill-child", "--propagation", "private"]
    if subprocess.run([*enter, "true"], capture_output=True, check=False).returncode:
        skip("no namespaces for this user")
    report = Report(args.only)
    for user, ordinary in users():
        with Place(args.lib, args.verbatim, ordinary) as place:
            examples = shutil.copytree(args.examples, os.path.join(place.dir, "examples"))
            here = os.path.dirname(os.path.abspath(__file__))
            script = shutil.copytree(here, os.path.join(place.dir, "tests/view"))
            shutil.copytree(os.path.join(os.path.dirname(here), "apps"), os.path.join(place.dir, "tests/apps"))
            installed = Installed(place).dir

            def go(name):
                for program in ("ip", "nsenter", "ib_write_bw", "ibv_devinfo"):
                    tool(program)
                place.run(*enter, "/usr/bin/python3", os.path.join(script, "examples.py"), INSIDE, name, examples, installed,
                          timeout=240)
            for name in CASES:
                report.case(f"{user}: {name}", lambda name=name: go(name))
    return report.end()


if __name__ == "__main__":
    sys.exit(main())
