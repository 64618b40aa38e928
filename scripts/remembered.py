# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""What has been found good, for all clones of this user, as a compiler's cache does: a file named after a hash of all that was looked
at, in a folder of $XDG_CACHE_HOME/verbatim (~/.cache/verbatim), or of BUILD where that cannot be written. One that was of no use
for a month goes."""

import contextlib
import functools
import hashlib
import os
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
KEPT = 30 * 24 * 3600  # seconds without use


@functools.cache
def content(path):
    with open(path, "rb") as handle:
        return hashlib.sha256(handle.read()).digest()


def digest(paths, *texts):
    """The same in each clone: names in it are seen from its root."""
    sha = hashlib.sha256()
    for text in texts:
        sha.update(text.replace(ROOT, ".").encode() + b"\0")
    for path in sorted(set(paths)):
        sha.update(path.replace(ROOT + "/", "./").encode() + b"\0" + content(path))
    return sha.hexdigest()


def forget_old(folder):
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        with contextlib.suppress(OSError):  # somebody else was first
            if os.stat(path).st_mtime < time.time() - KEPT:
                os.unlink(path)


def memory(what, build):
    """The folder, or None: nowhere."""
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    for folder in (os.path.join(home, "verbatim", what), os.path.join(build, f"{what}-cache")):
        try:
            os.makedirs(folder, exist_ok=True)
            if os.access(folder, os.W_OK):
                forget_old(folder)
                return folder
        except OSError:
            pass
    return None
