# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Ceph's messenger over RDMA (async+rdma): a monitor, and clients that have it keep values and give them back."""

import base64
import os
import re
import shutil
import signal
import subprocess
import uuid

from pairs import Failure
from shares import Skip

VALUE_BYTES = 48000
ROUNDS = 3
TRIES = 5
CONFIG = """
[global]
fsid = {fsid}
mon_host = v1:{address}:{port}
mon_initial_members = a
auth_cluster_required = none
auth_service_required = none
auth_client_required = none
ms_type = async+rdma
ms_cluster_type = async+rdma
ms_public_type = async+rdma
ms_async_rdma_device_name = {device}
ms_async_rdma_receive_buffers = 8192
ms_async_rdma_receive_queue_len = 1024
{more}
ms_bind_msgr2 = false
run_dir = {folder}
log_file = {folder}/$name.log
admin_socket = {folder}/$name.$pid.asok
mon_data = {folder}/mon
mon_data_avail_crit = 0
debug_ms = 1
[mon.a]
public_addr = v1:{address}:{port}
"""
# Two queue pairs that agree over TCP, and the connection manager.
WAYS = (("", ""), (", by rdma_cm", "ms_async_rdma_cm = true\nms_async_rdma_type = iwarp"))


class Ceph:
    def __init__(self, applications, device):
        self.applications, self.device = applications, device

    def plain(self, *argv):
        self.applications.end(self.applications.start_plain(list(argv), env=self.env), 60, argv[0])

    def client(self, two, *argv):
        """A client whose first command goes before the monitor's map has come does not know the id of the cluster, and is refused."""
        for attempt in range(TRIES):
            try:
                process = self.applications.start(["ceph", "--connect-timeout", "20", *argv], host=int(two), env=self.env)
                return self.applications.end(process, 40, " ".join(argv))
            except Failure as fault:
                if "wrong fsid" not in str(fault) or attempt == TRIES - 1:
                    raise
        return None

    def prepared(self, address, more):
        for program in ("ceph-mon", "ceph", "monmaptool"):
            if not shutil.which(program):
                raise Skip(f"{program} is not installed")
        place = self.applications.place
        folder = os.path.join(place.runtime, "ceph")
        os.mkdir(folder)
        os.chown(folder, place.uid, -1)
        port, fsid = 16000 + os.getpid() % 4000, uuid.uuid4()
        config = place.file("ceph.conf", CONFIG.format(fsid=fsid, address=address, port=port, device=self.device, folder=folder, more=more), 0o644)
        self.env = {"CEPH_CONF": config, "VERBATIM_LOG": "info"}
        self.plain("monmaptool", "--create", "--fsid", str(fsid), "--addv", "a", f"[v1:{address}:{port}]", f"{folder}/monmap")
        self.plain("ceph-mon", "--mkfs", "-i", "a", "--monmap", f"{folder}/monmap")
        return folder

    def keep_values(self, two, folder):
        for number in range(ROUNDS):
            value = base64.b64encode(os.urandom(VALUE_BYTES * 3 // 4)).decode()
            path = self.applications.place.file("value", value, 0o644)
            back = os.path.join(folder, f"back{number}")
            said = self.client(two, "config-key", "set", f"key{number}", "-i", path)
            if "claimed queue pair numbers" not in said:
                raise Failure(f"the client's messenger had no queue pair:\n{said[-3000:]}")
            self.client(two, "config-key", "get", f"key{number}", "-o", back)
            with open(back, encoding="ascii") as handle:
                if handle.read() != value:
                    raise Failure("the value that came back is not the one that was sent")

    def run(self, two, address, more):
        folder = None
        try:
            folder = self.prepared(address, more)
            monitor = self.applications.start(["ceph-mon", "-i", "a", "-f"], env=self.env, stdout=subprocess.DEVNULL)
            try:
                status = self.client(two, "-s")
                if not re.search(r"mon: 1 daemons, quorum a", status):
                    raise Failure(f"ceph -s:\n{status[-3000:]}")
                self.keep_values(two, folder)
                if monitor.poll() is not None:
                    raise Failure(f"the monitor ended: {monitor.returncode}")
            finally:
                if monitor.poll() is None:
                    os.killpg(monitor.pid, signal.SIGKILL)
                monitor.wait()
        finally:
            if folder:
                shutil.rmtree(folder, ignore_errors=True)

    def cases(self, where, two, address):
        for name, more in WAYS:
            self.applications.report.case(f"{where}: Ceph, async+rdma{name}", lambda more=more: self.run(two, address, more))
