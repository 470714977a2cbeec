# SPDX-License-Identifier: GPL-2.0-only
# make demo    boots the lab, prints the table that shows the effect, writes the report
# make test    all tests; its last line is `N passed, N failed`
# make stress  the tests that take long: more operations, more fuzzing, a debug kernel
# make install the program, its man pages and services and the scheduler's module, here
# Each installs what it needs from Debian's archive, with sudo if you are not root.

PACKAGES := clang dbus-bin dbus-daemon e2fsprogs gcc libc6-dev libclang-rt-14-dev libelf-dev libelf1 libssl3 make pkgconf python3-venv qemu-system-x86 sqlite3 systemd xz-utils zlib1g-dev
# Any cargo from this version on will do; without one, Debian's own is installed.
CARGO_AT_LEAST := 1.91
CARGO_PACKAGES := cargo-web rustc-web

CARGO ?= cargo
SUDO := $(if $(filter 0,$(shell id -u)),,sudo)
RELEASE := target/x86_64-unknown-linux-gnu/release/frontrow
DEMO := target/demo
FUZZ_SECONDS ?= 60

# What building a kernel takes besides; its sources are unpacked, not installed.
STRESS_PACKAGES := bc bison dwarves flex kmod libelf-dev zlib1g-dev
STRESS_ROUNDS ?= 10
STRESS_OPERATIONS ?= 10000000
STRESS_FUZZ_SECONDS ?= 600
# Of IOPro's readers: one takes half a minute.
STRESS_FUZZ_ROUNDS ?= 20
# Of messages, journals and profiles (each some milliseconds), and of snapshots.
STRESS_FUZZ_CASES ?= 20000
STRESS_FUZZ_SNAPSHOTS ?= 2000
# Of a recording that they read; 1000 are six million records, and half an hour.
STRESS_MEMORY_LAPS ?= 200

# The binary is in the guests' image, and results name its digest: the same
# sources are to give the same bytes whoever builds them, wherever.
CARGO_HOME ?= $(HOME)/.cargo
NO_HOST_PATHS := --config "target.'cfg(target_os = \"linux\")'.rustflags = ['--remap-path-prefix=$(CARGO_HOME)=cargo']"

.PHONY: build setup setup-stress demo test stress slow-tests
build: setup
	$(CARGO) build --release --locked $(NO_HOST_PATHS) -p frontrow

# Silent and without root where everything is there already.
setup:
	@missing=$$(for package in $(PACKAGES); do \
		dpkg-query -W -f '$${Status}' $$package 2>/dev/null | grep -q ' installed' || echo $$package; done); \
	have=$$($(CARGO) --version 2>/dev/null | cut -d' ' -f2); \
	printf '%s\n' $(CARGO_AT_LEAST) "$$have" | sort -VC || missing="$$missing $(CARGO_PACKAGES)"; \
	apt-cache policy linux-image-6.12-cloud-amd64 2>/dev/null | grep -q 'Candidate: [0-9]' || lists=old; \
	if [ -n "$$missing$$lists" ]; then $(SUDO) apt-get update -qq; fi; \
	if [ -n "$$missing" ]; then echo "Installing $$missing"; \
		$(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends $$missing; fi

setup-stress:
	@$(MAKE) --no-print-directory setup PACKAGES="$(PACKAGES) $(STRESS_PACKAGES)"

demo: build
	$(RELEASE) lab run qasio --workload m1,m2,m3,m4 --load idle,writer --seeds 1..5 --out $(DEMO)
	@echo "The same as a page with pictures: $(DEMO)/report.html"

test: build readers
	$(CARGO) run -q --locked -p tally -- \
		-- $(CARGO) test --workspace --locked --no-fail-fast \
		-- $(MAKE) --no-print-directory -C kernel/simflash/test check \
		-- $(MAKE) --no-print-directory -C kernel/simflash/test fuzz SECONDS=$(FUZZ_SECONDS)

stress: setup-stress
	@echo "Building the debug kernel takes a quarter of an hour, the first time; its trials more than an hour."
	$(CARGO) run -q --locked -p tally -- \
		-- $(MAKE) --no-print-directory -C kernel/simflash/test check ROUNDS=$(STRESS_ROUNDS) \
		-- $(MAKE) --no-print-directory -C kernel/simflash/test stress OPERATIONS=$(STRESS_OPERATIONS) \
		-- $(MAKE) --no-print-directory -C kernel/simflash/test fuzz SECONDS=$(STRESS_FUZZ_SECONDS) \
		-- env FUZZ_ROUNDS=$(STRESS_FUZZ_ROUNDS) $(CARGO) test --locked -p iopro --test fuzz \
		-- env PROPTEST_CASES=$(STRESS_FUZZ_CASES) $(CARGO) test --locked -p dbus -p knobs -p foreground -p launch --lib --test fuzz --test profile \
		-- env FUZZ_ROUNDS=$(STRESS_FUZZ_SNAPSHOTS) $(CARGO) test --locked -p snapshot --test fuzz \
		-- env MEMORY_LAPS=$(STRESS_MEMORY_LAPS) $(CARGO) test --locked -p iopro --test memory \
		-- $(MAKE) --no-print-directory slow-tests \
		-- $(CARGO) test --locked -p frontrow --test stress

# What `make test` ignores. (tally takes a second `--` for its next runner.)
slow-tests:
	$(CARGO) test --locked -p frontrow --test iopro --test recording --test fasttrack --test security -- --ignored

include packaging/install.mk
include tests/readers/readers.mk
