# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# A thin front for Meson: `make`, `make check`, `make try`. All knowledge of the build is in meson.build.

BUILD ?= build
SEEDS ?= 10000
SEED ?=
SECONDS ?= 60
MESON ?= meson
JOBS ?= $(shell nproc)
PREFIX ?= /usr/local
LIBDIR ?= lib
DESTDIR ?=

.PHONY: all setup with-tests check try lint format asan tsan promises sim sim-cm mistakes fuzz interop applications bench clean \
	install uninstall deb tarball

all: $(BUILD)/build.ninja
	@ninja -C $(BUILD) -j $(JOBS)

# Installs with apt the missing packages that the commands below need. Does nothing, and needs no network,
# when all are installed.
setup:
	@scripts/setup check

$(BUILD)/build.ninja:
	@scripts/setup build
	@$(MESON) setup $(BUILD) > $(BUILD).setup.log 2>&1 || { cat $(BUILD).setup.log; exit 1; }
	@rm -f $(BUILD).setup.log

# The build with its tests, also where an earlier one was made before cmocka was installed.
with-tests: setup $(BUILD)/build.ninja
	@$(MESON) configure $(BUILD) -Dtests=enabled
	@ninja -C $(BUILD) -j $(JOBS)

# Every test: the plain build, then both sanitizer builds; ends with "N passed, N failed, N skipped".
check: setup
	@scripts/setup --if-possible promises
	@scripts/check

# The main use: Debian's own programs, two processes, an ordinary user.
try:
	@scripts/setup try
	@$(MAKE) --no-print-directory $(BUILD)/build.ninja
	@ninja -C $(BUILD) -j $(JOBS) verbatim
	@scripts/try

lint: $(BUILD)/build.ninja
	@scripts/lint $(BUILD)

# Formats every tracked C file by .clang-format.
format:
	@git ls-files -z '*.c' '*.h' | xargs -0 clang-format -i

asan:
	@scripts/check --only asan

tsan:
	@scripts/check --only tsan

# Each target above and below, and each command of README.md, docs/install.md and examples/README.md, anew.
promises: with-tests
	@scripts/setup --if-possible promises
	@tests/promises/run.py --anew

# Simulated runs: as many as SEEDS says, or the one of SEED again with its trace.
sim: with-tests
	@$(BUILD)/tests/sim/sim $(if $(SEED),--seed $(SEED) --trace,--seeds 1..$(SEEDS))

# The same of the connection manager.
sim-cm: with-tests
	@$(BUILD)/tests/sim/cm/sim-cm $(if $(SEED),--seed $(SEED) --trace,--seeds 1..$(SEEDS))

# Shows that tests find planted mistakes in the rooms of the device. ONLY=TEXT: those whose description contains it.
mistakes: with-tests
	@tests/mistakes/mistakes.py --source $(CURDIR) --build $(CURDIR)/$(BUILD) --private $(CURDIR)/$(BUILD)/tests/mistakes/device $(if $(ONLY),--only "$(ONLY)")

# Each fuzz target for SECONDS, from the captures and the inputs that earlier runs kept.
fuzz:
	@scripts/setup fuzz
	@scripts/fuzz $(SECONDS)

# Against the Linux kernel's rdma_rxe, which a lab beside the project (RXE_LAB=folder) runs in an emulated machine; see
# docs/interop.md. Ends with an error and the reason where there is no lab: that is no pass. ARGS="--quick" and others.
interop: with-tests
	@tests/interop/run.py $(BUILD) $(ARGS)

# Below PREFIX, in folders of its own (docs/install.md); DESTDIR is put in front of it. `make uninstall` leaves nothing.
install: all
	@scripts/install --destdir "$(DESTDIR)" --libdir "$(LIBDIR)" $(BUILD) "$(PREFIX)"

uninstall:
	@scripts/install --uninstall --destdir "$(DESTDIR)" "$(PREFIX)"

# Debian packages in build-deb, for the release that this machine runs, judged by lintian.
deb:
	@scripts/setup deb
	@scripts/deb

# A relocatable archive in build-portable, for glibc 2.28 and later, and its checksum.
tarball:
	@scripts/setup tarball
	@scripts/tarball

# Every program of docs/applications.md, on one host and between two. ARGS="--only REGEX" for some of them.
applications: with-tests
	@scripts/setup applications
	@tests/applications/run.py --lib $(BUILD)/lib --verbatim $(BUILD)/verbatim --readers $(BUILD)/tests/applications/readers --shares 2 $(ARGS)

# The library beside its peers and beside what the machine reaches, in interleaved rounds on a quiet machine, with goals.
# KEEP=1: the result goes to bench/results, to be committed. ARGS="--only REGEX --rounds N" and others: bench/run --help.
# Without ARGS also cost over number, which takes some minutes: bench/scale/run.py.
bench: with-tests
	@scripts/setup bench
	@bench/run --build $(CURDIR)/$(BUILD) --curves 2 $(if $(KEEP),--keep,--out $(CURDIR)/$(BUILD)/bench/results) $(ARGS)
	@$(if $(ARGS),:,bench/scale/run.py --build $(CURDIR)/$(BUILD) --out $(if $(KEEP),bench/results,$(CURDIR)/$(BUILD)/bench/results)/scale)

clean:
	@rm -rf $(BUILD) build-asan build-tsan build-fuzz build-portable build-deb
