# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""How each command of the documents and each target of the Makefile is run, and what is expected of it. `done` names what a step
keeps, as it stands there; what it runs is that text with `change` applied, or `run`. A step whose programs (`needs`) or packages
(`group` of scripts/packages) the machine lacks is skipped."""

import dataclasses


@dataclasses.dataclass
class Step:
    done: list  # texts of commands; a target of the Makefile is "make TARGET"
    run: str = None  # a script of bash; None: the texts, line by line
    change: tuple = ()  # pairs: what stands there, and what is run instead
    says: str = ""  # a pattern that its output has
    makes: str = ""  # a file that is there afterwards, by a pattern of names
    status: int = 0
    needs: str = ""  # programs
    group: str = ""


@dataclasses.dataclass
class Apart:
    """Steps in a copy of the tracked files, one after the other. What has passed is not run again while its inputs are the same."""
    name: str
    steps: list
    without: tuple = ()  # folders that have no part in it
    bare: bool = False  # as on a machine that has the packages of the group build alone: without tests


@dataclasses.dataclass
class Elsewhere:
    """Run by a test of `meson test`, or by a part of scripts/check."""
    done: list
    test: str = ""
    part: str = ""


# $WORK is a folder of the test's own; the home and the stage of the commands are in it. $PORT is a free one.
IN_WORK = (("/opt/verbatim", "$WORK/opt/verbatim"), ("-C /opt", "-C $WORK/opt"), ("/etc/ld.so.conf.d/", "$WORK/"), ("/tmp/", "$WORK/"))
PROGRAM = r"""cat > prog.c <<'END'
#include <infiniband/verbs.h>
#include <stdio.h>
int main(void) { int n; return !ibv_get_device_list(&n) || printf("%d devices\n", n) < 0; }
END
"""

APART = [
    Apart("from the sources", [
        Step(["make"], makes="build/verbatim"),
        Step(["make setup"]),
        Step(["make install PREFIX=$HOME/.local"], makes="home/.local/bin/verbatim"),
        Step(["make install"], run="make install DESTDIR=$WORK/stage LIBDIR=lib64 && $WORK/stage/usr/local/bin/verbatim devices",
             says="gid 0", makes="stage/usr/local/lib64/verbatim/libibverbs.so.1"),
        Step(["export PKG_CONFIG_PATH=/usr/local/lib/verbatim/pkgconfig", "cc prog.c $(pkg-config --cflags --libs libibverbs) -o prog",
              "verbatim run ./prog"],
             run=PROGRAM + "PATH=$HOME/.local/bin:$PATH\n{texts}", change=(("/usr/local", "$HOME/.local"),), says=r"^[1-9]\d* devices$"),
        Step(["echo /opt/verbatim/lib/verbatim > /etc/ld.so.conf.d/000-verbatim.conf && ldconfig"],
             run="mkdir -p $WORK/opt && cp -r $HOME/.local $WORK/opt/verbatim\n{texts}\nldconfig -C $WORK/cache -p",
             change=(*IN_WORK, ("&& ldconfig", "&& ldconfig -X -C $WORK/cache -f $WORK/000-verbatim.conf")),
             says=r"libibverbs\.so\.1 .* => /\S*/opt/verbatim/lib/verbatim/libibverbs\.so\.1"),
        Step(["make uninstall PREFIX=$HOME/.local"], run="{texts}\ntest -z \"$(find $HOME/.local -type f)\""),
        Step(["make uninstall"], run="make uninstall DESTDIR=$WORK/stage && test -z \"$(find $WORK/stage -type f)\""),
        Step(["make format"], run="clang-format --version | grep -q ' version 14\\.' || exit 77\nmake format && git diff --exit-code --stat",
             needs="clang-format"),
        Step(["make clean"], run="make clean && ! test -e build"),
    ], without=("tests/", "bench/results/"), bare=True),
    Apart("Debian packages", [
        Step(["make deb"], makes="tree/build-deb/verbatim_*.deb", group="deb"),
        Step(["apt install ./build-deb/libverbatim_*.deb ./build-deb/verbatim_*.deb"],
             run="apt-get --simulate install ./build-deb/libverbatim_*.deb ./build-deb/verbatim_*.deb\n"
                 "for file in build-deb/libverbatim_*.deb build-deb/verbatim_*.deb; do dpkg-deb -x $file $WORK/unpacked; done\n"
                 "$WORK/unpacked/usr/bin/verbatim devices", says="gid 0", group="deb", needs="apt-get dpkg-deb"),
    ], without=("tests/", "bench/results/")),
    Apart("the archive", [
        Step(["make tarball"], makes="tree/build-portable/verbatim-*.tar.gz", group="tarball"),
        Step(["tar -xzf verbatim-0.1.0-linux-x86_64.tar.gz -C /opt"], run="mkdir -p $WORK/opt && cd build-portable\n{texts}",
             change=IN_WORK, makes="opt/verbatim-*/bin/verbatim", group="tarball"),
        Step(["/opt/verbatim-0.1.0-linux-x86_64/bin/verbatim run ib_write_bw"],
             change=(("/opt", "$WORK/opt"), ("ib_write_bw", "ibv_devices")), says="vb_", group="tarball", needs="ibv_devices"),
    ], without=("tests/", "bench/results/")),
    Apart("fuzzing", [Step(["make fuzz"], run="make fuzz SECONDS=1", group="fuzz")], without=("bench/", "docs/", "man/")),
]

# In the tree itself, with its plain build.
HERE = [
    Step(["build/verbatim run ibstat"], says="State: Active", needs="ibstat"),
    Step(["build/verbatim run ib_write_bw &", "build/verbatim run ib_write_bw 127.0.0.1"], needs="ib_write_bw",
         run="{first}\nfor i in $(seq 100); do {second} && break; kill -0 $! || exit 1; sleep 0.1; done\nwait $!",
         change=(("ib_write_bw", "ib_write_bw -p $PORT"),), says=r"^ *65536 +\d+ "),
    Step(["build/verbatim run mpirun -np 2 ./my-program"], change=(("./my-program", "ibv_devices"),), says=r"(?s)vb_.*vb_",
         needs="mpirun ibv_devices"),
    Step(["build/verbatim run [-q] [-v] [--view=preload|namespace|none] CMD"],
         change=(("[-q] [-v] [--view=preload|namespace|none] CMD", "-q -v --view=none ibv_devices"),), says="vb_", needs="ibv_devices"),
    Step(["build/verbatim devices"], says="gid 0"),
    Step(["build/verbatim doctor CMD"], change=(("CMD", "ibv_devices"),), needs="ibv_devices"),
    Step(["LD_LIBRARY_PATH=build/lib ibv_devinfo -v"], says=r"hca_id:\s+vb_", needs="ibv_devinfo"),
    Step(["VERBATIM_LOG=debug VERBS_LOG_FILE=/tmp/why.log build/verbatim run my-program"],
         change=(*IN_WORK, ("my-program", "ibv_devinfo")), makes="why.log", needs="ibv_devinfo"),
    Step(["verbatim view --cdi /run/verbatim-view > /etc/cdi/verbatim.json"], run="mkdir -p $WORK/run $WORK/cdi\n{texts}",
         change=(("verbatim view", "build/verbatim view"), ("/run/", "$WORK/run/"), ("/etc/cdi/", "$WORK/cdi/")),
         makes="cdi/verbatim.json"),
    Step(["make with-tests"], makes="build/tests/sim/sim"),
    Step(["make try"], says="ib_write_bw", group="try"),
    Step(["make sim"], run="make sim SEEDS=20 && make sim SEED=1", says="every byte and every completion as the oracle says"),
    Step(["make sim-cm"], run="make sim-cm SEEDS=20 && make sim-cm SEED=1", says="every event as the oracle says"),
    Step(["make mistakes"], run="make mistakes ONLY='entries that were filled before a RESET'", says="^ok 2 - found"),
    Step(["make interop"], run="RXE_LAB=$WORK/no-lab make interop", status=2, says="lab"),
    Step(["make applications"], run="make applications ARGS=\"--only 'one host: ibstat'\"", says="^ok ", group="applications"),
    Step(["make bench"], run="make bench ARGS=--list", says="^SEND latency, 8 B", group="bench"),
]

ELSEWHERE = [
    Elsewhere(["make check"], part="promises"),
    Elsewhere(["make asan"], part="asan"),
    Elsewhere(["make tsan"], part="tsan"),
    Elsewhere(["make lint"], part="lint"),
    Elsewhere(["make promises"], part="promises"),
    Elsewhere(["COPY --from=verbatim-build /opt/verbatim /opt/verbatim", 'ENTRYPOINT ["/opt/verbatim/bin/verbatim", "run", "--"]',
               "podman run --device verbatim/hca=run IMAGE /opt/verbatim/bin/verbatim run CMD",
               "podman run --device verbatim/hca=all --network host IMAGE CMD"], test="view-examples"),
]
