# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Two hosts for a test: two network namespaces of this user, joined by a veth pair. They live as long as this program, so that
nothing is left behind however it ends."""

import os
import shutil
import subprocess
import sys
import time

INTERFACE = "vbudp0"
DEVICE = f"vb_{INTERFACE}"
IPV4 = ("198.51.100.1", "198.51.100.2")  # of the block that is reserved for examples
IPV6 = ("2001:db8::1", "2001:db8::2")
MARK = "VB_UDP_NAMESPACE"


def tool(name):
    return shutil.which(name) or f"/usr/sbin/{name}"


def enter(skip):
    """Starts this program again in a user and network namespace of its own (as root: a network namespace)."""
    if os.environ.get(MARK) == "1":
        return
    flags = ["--net"] if os.geteuid() == 0 else ["--map-root-user", "--net"]
    if subprocess.run(["unshare", *flags, "true"], capture_output=True, check=False).returncode != 0:
        skip("a network namespace may not be created here (unshare --net is refused)")
    os.environ[MARK] = "1"
    os.execvp("unshare", ["unshare", *flags, "setpriv", "--pdeathsig", "TERM", sys.executable, *sys.argv])


class Hosts:
    """Host 0 is this program's own namespace, host 1 that of a process which does nothing but hold it."""

    def __init__(self, skip):
        self.holder = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "unshare", "--net", "cat"],
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.holder.stdin.write(b"\n")  # echoed by cat: it is in its namespace
        self.holder.stdin.flush()
        if not self.holder.stdout.readline():
            skip("a second network namespace cannot be made here")
        self.enter = ([], ["nsenter", f"--net=/proc/{self.holder.pid}/ns/net"])
        self.launch = self.enter  # what to put before the programs under test
        added = subprocess.run([tool("ip"), "link", "add", INTERFACE, "type", "veth", "peer", "name", INTERFACE, "netns",
                                str(self.holder.pid)], capture_output=True, text=True, check=False)
        if added.returncode != 0:
            self.close()
            skip(f"a veth pair cannot be made here: {added.stderr.strip()}")
        for host in (0, 1):
            self.ip(host, "link", "set", "lo", "up")
            self.ip(host, "addr", "add", f"{IPV4[host]}/24", "dev", INTERFACE)
            self.ip(host, "addr", "add", f"{IPV6[host]}/64", "dev", INTERFACE, "nodad")
        self.set_mtu(9000)
        for host in (0, 1):
            self.wait_up(host)

    def wait_up(self, host):
        """The kernel tells a fresh interface's carrier a moment after both ends are up."""
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            out = subprocess.run([*self.enter[host], tool("ip"), "-o", "link", "show", "dev", INTERFACE], capture_output=True,
                                 text=True, check=True).stdout
            if "state UP" in out:
                return
            time.sleep(0.01)
        raise RuntimeError(f"{INTERFACE} of host {host} did not come up")

    def netns(self, host):
        """The path of a host's namespace, for setns(2)."""
        return f"/proc/{os.getpid() if host == 0 else self.holder.pid}/ns/net"

    def ip(self, host, *words):
        subprocess.run([*self.enter[host], tool("ip"), *words], check=True)

    def link_local(self, host):
        """The link-local address of a host, once the kernel has found that it is the only one."""
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            out = subprocess.run([*self.enter[host], tool("ip"), "-6", "-o", "addr", "show", "dev", INTERFACE, "scope", "link"],
                                 capture_output=True, text=True, check=True).stdout
            if "inet6" in out and "tentative" not in out:
                return out.split("inet6")[1].split("/")[0].strip()
            time.sleep(0.01)
        raise RuntimeError(f"host {host} has no link-local address")

    def set_mtu(self, mtu):
        for host in (0, 1):
            self.ip(host, "link", "set", INTERFACE, "mtu", str(mtu), "up")

    def index_of(self, host, address):
        """Where an address is in the host's GID table."""
        import ipaddress
        wanted = ipaddress.ip_address(address)
        if wanted.version == 4:
            wanted = ipaddress.ip_address(f"::ffff:{address}")
        out = subprocess.run([*self.enter[host], "ibv_devinfo", "-v", "-d", DEVICE], capture_output=True, text=True,
                             check=True).stdout
        for line in out.splitlines():
            if "GID[" in line:
                number, _, rest = line.partition("]:")
                if ipaddress.ip_address(rest.split(",")[0].strip()) == wanted:
                    return int(number.split("[")[1])
        raise RuntimeError(f"{address} is in no GID of host {host}:\n{out}")

    def close(self):
        self.holder.stdin.close()
        self.holder.kill()
        self.holder.wait()
        subprocess.run([tool("ip"), "link", "del", INTERFACE], capture_output=True, check=False)
