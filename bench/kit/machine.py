# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""What a result must say about the machine to be understood elsewhere: no names, no paths."""

import os
import platform


def cpu_fields():
    wanted = ("model name", "cpu family", "model", "vendor_id")
    found = {}
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as handle:
        for line in handle:
            key, _, value = line.partition(":")
            if key.strip() in wanted:
                found.setdefault(key.strip(), value.strip())
    return found


def cpu():
    """The kind of processor: where this is the same, ratios between figures are expected to be."""
    fields = cpu_fields()
    number = " ".join(f"{key.split()[-1]} {fields[key]}" for key in ("cpu family", "model") if key in fields)
    return f"{fields.get('model name', platform.machine())} ({number})" if number else fields.get("model name", platform.machine())


def read(path):
    try:
        with open(path, encoding="ascii") as handle:
            return handle.read().strip()
    except OSError:
        return None


def facts():
    release = platform.release().split("-")[0]  # without what the builder of the kernel added
    governor = read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
    virtual = "hypervisor" in (read("/proc/cpuinfo") or "")
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "cpu": cpu(),
        "cores": os.cpu_count(),
        "virtual machine": "yes" if virtual else "no",
        "governor": governor or "none that the system shows",
        "memory GiB": round(memory / (1 << 30)),
        "kernel": f"{platform.system()} {release}",
        "C library": " ".join(platform.libc_ver()),
    }
