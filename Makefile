# SPDX-License-Identifier: GPL-2.0-only
# make demo    boots the lab, prints the table that shows the effect, writes the report
# make readme  runs the demo, and puts its figures into README and docs/
# make test    all tests; its last line is `N passed, N failed`
# make lint    how the code is formatted, what clippy says, what the documentation links to,
#              and whether its sentences are short and its words plain
# make stress  the tests that take long: more operations, more fuzzing, a debug kernel; in parts as well
# make packages .deb and .rpm of what `make install` installs, in target/packages
# make android HEADERS=DIR BTF=FILE the package of a phone, for KernelSU and Magisk
# make install the program, its man pages and services and the scheduler's module, here
# make install-lab the lab, which runs experiments
# make ARCH=arm64 builds the program for arm64 machines, and for the lab's arm64 guests
# Each installs what it needs from Debian's or Ubuntu's archive, with sudo if you are not root;
# on Fedora and Arch it says what to install.

# In Debian and Ubuntu. libelf is built from source: in some releases its archive cannot be
# linked. A library's name may end in t64 there; any package counts that provides
# it. clang has its runtime in a package of its own version.
CLANG = $(or $(shell clang -dumpversion 2>/dev/null | cut -d. -f1),$(shell apt-cache depends clang 2>/dev/null | sed -n 's/^ *Depends: clang-//p'))
BUILD_PACKAGES := autoconf automake autopoint bison clang flex gawk gcc libc6-dev make pkgconf xz-utils
# To run the lab.
LAB_PACKAGES := e2fsprogs libelf1 libssl3 qemu-system-x86
TEST_PACKAGES = dbus-bin dbus-daemon libclang-rt-$(CLANG)-dev python3-venv sqlite3 systemd
PACKAGES = $(BUILD_PACKAGES)
# To build, not to run the lab: untried, as there was no such system to try it on.
FEDORA_PACKAGES := autoconf automake bison cargo clang dbus-daemon e2fsprogs flex gawk gcc gettext-devel glibc-static kernel-devel make pkgconf
ARCH_PACKAGES := base-devel clang dbus e2fsprogs linux-headers rust
# Any cargo from this version on will do; without one, Debian's own is installed.
CARGO_AT_LEAST := 1.91
CARGO_PACKAGES := cargo-web rustc-web

CARGO ?= cargo
SUDO = $(if $(filter 0,$(shell id -u)),,$(or $(shell command -v sudo),$(error installing packages needs root: run make as root, or install sudo)))

# What to build for: x86-64 or arm64, the machine's own if not given.
HOST_MACHINE := $(shell uname -m)
MACHINE_OF_x86-64 := x86_64
MACHINE_OF_arm64 := aarch64
MACHINE := $(if $(ARCH),$(or $(MACHINE_OF_$(ARCH)),$(error ARCH is x86-64 or arm64)),$(HOST_MACHINE))
TARGET := $(MACHINE)-unknown-linux-gnu
# What packages are made of: the release, or what tests have built (debug).
PROFILE ?= release
RELEASE := target/$(TARGET)/$(PROFILE)/frontrow
PROGRAMS := $(RELEASE) $(RELEASE)-lab $(RELEASE)-guest
IS_CROSS := $(filter-out $(HOST_MACHINE),$(MACHINE))
GNU := $(MACHINE)-linux-gnu
# In Debian: the compiler, its C library, and where rustup is not, Rust's standard library.
DEBIAN_ARCH := $(subst x86_64,amd64,$(subst aarch64,arm64,$(MACHINE)))
CROSS_PACKAGES := $(if $(IS_CROSS),gcc-$(subst _,-,$(GNU)) libc6-dev-$(DEBIAN_ARCH)-cross)
CROSS_TOOLS := $(if $(IS_CROSS),CARGO_TARGET_$(shell echo $(TARGET) | tr a-z- A-Z_)_LINKER=$(GNU)-gcc)
DEMO := target/demo
# Its figures in README are of this result.
DEMO_KEPT := docs/results/kept/demo-emmc-6.12.json.xz
FUZZ_SECONDS ?= 60

# What building a kernel takes besides; its sources are unpacked, not installed.
STRESS_PACKAGES := bc bison debootstrap dwarves flex kmod libelf-dev lintian lld llvm qemu-user zlib1g-dev
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

# The commit that they are built from, which `frontrow --version` says. It is put into the programs after
# the linker: a commit builds nothing again, and guests get the program without it.
COMMIT = $(shell git rev-parse --short=12 HEAD 2>/dev/null || grep -o '^[0-9a-f]\{12\}' packaging/commit || echo unknown)
CHANGED = $(if $(shell git status --porcelain 2>/dev/null),+)
OBJCOPY = $(if $(IS_CROSS),$(GNU)-)objcopy
SECTION := .frontrow.commit

# Puts the commit into programs.
define name_commit
@printf %s '$(COMMIT)$(CHANGED)' > target/commit
@for program in $(1); do \
	$(OBJCOPY) --remove-section $(SECTION) --add-section $(SECTION)=target/commit $$program $$program.named && \
	mv -f $$program.named $$program || exit 1; done
endef
RELEASE_OPTIONS = --release --locked $(NO_HOST_PATHS) --target $(TARGET) -p frontrow

.PHONY: build name-programs setup setup-cross arm64-program arm64-guests setup-arm64-guests setup-with-apt setup-without-apt install-packages setup-lab setup-tests setup-stress setup-browser setup-phones demo demo-plan readme committed test lint stress
build: setup $(if $(IS_CROSS),setup-cross)
	$(CROSS_TOOLS) $(CARGO) build $(RELEASE_OPTIONS)
	$(call name_commit,$(PROGRAMS))

# The same of programs that are built already.
name-programs:
	$(call name_commit,$(PROGRAMS))

# Rust's standard library is the compiler's own: rustup's is no good for Debian's rustc.
HAS_LIBRARY = $(wildcard $(shell rustc --print target-libdir --target $(TARGET)))
setup-cross:
	@$(MAKE) --no-print-directory install-packages PACKAGES='$(CROSS_PACKAGES)'
	@$(if $(HAS_LIBRARY),:,$(if $(shell command -v rustup),rustup target add $(TARGET),\
		$(SUDO) dpkg --add-architecture $(DEBIAN_ARCH) && $(SUDO) apt-get update -qq && \
		$(SUDO) apt-get install -qq -y --no-install-recommends libstd-rust-web-dev:$(DEBIAN_ARCH)))

# Silent and without root where everything is there already.
setup: $(if $(shell command -v apt-get),setup-with-apt,setup-without-apt)

# The lab asks apt where Debian's archive is, which apt knows once it has read its lists.
setup-with-apt:
	@$(if $(shell apt-get indextargets --format '$$(ORIGIN)' 'Created-By: Packages'),:,$(SUDO) apt-get update -qq)
	@$(MAKE) --no-print-directory install-packages PACKAGES='$(value PACKAGES)'

CARGO_VERSION = $(shell $(CARGO) --version 2>/dev/null | cut -d' ' -f2)
# Debian 12's is new enough in its security updates only.
CARGO_OF_APT = $(shell apt-cache policy $(firstword $(CARGO_PACKAGES)) 2>/dev/null | sed -n 's/^ *Candidate: \([0-9]\)/\1/p')
is_old = $(shell printf '%s\n' $(CARGO_AT_LEAST) "$(1)" | sort -VC || echo old)
CARGO_MISSING = $(if $(call is_old,$(CARGO_VERSION)),$(if $(call is_old,$(CARGO_OF_APT)),$(error cargo $(CARGO_AT_LEAST) or newer is in none of this system's packages: get it from https://rustup.rs, or with Debian's security updates),$(CARGO_PACKAGES)))
# Names without versions, of what is installed and of what that provides.
TO_NAMES := s/([^)]*)//g; s/,/ /g; s/^ii *//p
INSTALLED = $(shell dpkg-query -W -f '$${db:Status-Abbrev} $${Package}, $${Provides}\n' | sed -n '$(TO_NAMES)')
MISSING = $(strip $(filter-out $(INSTALLED),$(PACKAGES)) $(CARGO_MISSING))

install-packages:
	@$(if $(MISSING),echo "Installing $(MISSING)" && $(SUDO) apt-get update -qq && \
		$(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends $(MISSING),:)

# Which names, each system's own package manager knows.
LIKE = $(shell . /etc/os-release 2>/dev/null; echo "$$ID $$ID_LIKE")
LACKS = $(foreach program,autoreconf autopoint bison $(CARGO) clang flex gawk gcc pkg-config,$(if $(shell command -v $(program)),,$(program)))
ADVICE = $(or $(if $(filter fedora,$(LIKE)),sudo dnf install $(FEDORA_PACKAGES)),$(if $(filter arch,$(LIKE)),sudo pacman -S --needed $(ARCH_PACKAGES)),install these with a static library of libc)
setup-without-apt:
	@$(if $(strip $(LACKS)),echo "this machine has no $(strip $(LACKS)) to build frontrow with: $(ADVICE)" >&2; exit 1,:)

setup-lab:
	@$(MAKE) --no-print-directory setup PACKAGES='$$(BUILD_PACKAGES) $$(LAB_PACKAGES)'

setup-tests:
	@$(MAKE) --no-print-directory setup PACKAGES='$$(BUILD_PACKAGES) $$(LAB_PACKAGES) $$(TEST_PACKAGES)'

setup-stress: setup-tests
	@$(MAKE) --no-print-directory setup PACKAGES='$$(STRESS_PACKAGES)'

# The host's program is linked without more optimization than its crates had (opt-level 0 is that of
# linking), which saves a minute; the guests' is the release's, as figures depend on it. While it is
# linked, the kernel is fetched, its modules are built and the device is aged.
demo: demo-plan setup-lab
	$(CARGO) rustc $(RELEASE_OPTIONS) --bin frontrow-lab -- -C opt-level=0
	$(call name_commit,$(RELEASE)-lab)
	$(DEMO_RUN) --prepare > $(DEMO).log 2>&1 & \
		$(CARGO) build $(RELEASE_OPTIONS) --bin frontrow-guest || { kill $$!; exit 1; }; wait
	$(DEMO_RUN) --early --out $(DEMO)
	@echo "The same as a page with pictures: $(DEMO)/report.html"
	@printf 'Beside the figures in README: '; $(RELEASE)-lab show $(DEMO) --against $(DEMO_KEPT)

DEMO_RUN = $(RELEASE)-lab run qasio --policy none,mq-deadline,kyber,bfq,frontrow,fastt \
	--workload m1,m2,m3,m4 --load idle,writer --seeds 1..5

demo-plan:
	@echo "make demo, on two idle cores where nothing is there yet:"
	@echo "  installs packages that are missing, such as QEMU and clang         1 minute"
	@echo "  builds frontrow-lab and the guests' program                        3 minutes"
	@echo "  fetches Debian's kernel 6.12 to ~/.cache/frontrow                  half a minute"
	@echo "  boots six guests, one for each scheduler: the first picture        1 minute"
	@echo "  boots 24 more: the means of five runs                              4 minutes"

# The result names the commit that made it.
readme: committed demo
	FRONTROW_DEMO=$(CURDIR)/$(DEMO) $(CARGO) test -q --locked --workspace --test integration -- --ignored keep_the_demo
	$(CARGO) test -q --locked --workspace --test integration -- results::
	git status --short README.md docs

committed:
	@$(if $(CHANGED),echo "Commit first what is changed: README names the commit of its figures." >&2; exit 1,:)

# Tests make file systems, with programs that a user's PATH lacks.
test stress stress-%: export PATH := $(PATH):/usr/sbin:/sbin

# Tests open the reports in a browser without a screen: 100 MB, from Debian's archive. In Ubuntu's
# there is none, and then they are not opened unless one is in the PATH.
BROWSERS := chromium-headless-shell chromium chromium-browser google-chrome
BROWSER = $(firstword $(foreach program,$(BROWSERS),$(shell command -v $(program))))
BROWSER_PACKAGE = $(if $(shell apt-cache show $(firstword $(BROWSERS)) 2>/dev/null),$(firstword $(BROWSERS)))
setup-browser: setup
	@$(if $(BROWSER),:,$(if $(BROWSER_PACKAGE),$(MAKE) --no-print-directory setup PACKAGES=$(BROWSER_PACKAGE),\
		echo "This system's archive has no Chromium: the reports are not opened in one."))

# Modules are built for phones as well, on whatever machine.
setup-phones:
	@$(MAKE) --no-print-directory setup PACKAGES='gcc-aarch64-linux-gnu'

# Builds once, then runs every test in a process of its own, and these runners beside them. What each took
# is in target/test-times.tsv.
XTASK_TEST = $(if $(BROWSER),,FRONTROW_WITHOUT_BROWSER=1) $(CARGO) run -q --locked -p xtask -- test
# (Through a variable, so that `make -n` runs nothing.)
QUIETLY = $(MAKE) --no-print-directory
FLASH_TEST = $(QUIETLY) -C kernel/simflash/test
POLICY_TEST = $(QUIETLY) -C kernel/iosched/test
test: setup-tests readers setup-packages setup-browser setup-phones setup-arm64-guests
	$(XTASK_TEST) \
		-- build $(QUIETLY) arm64-guests \
		-- build $(QUIETLY) name-programs PROFILE=debug \
		-- $(FLASH_TEST) check \
		-- $(POLICY_TEST) check \
		-- $(FLASH_TEST) fuzz SECONDS=$(FUZZ_SECONDS)

# Links to what is private are for those who read the sources, as the whole of it is.
lint: setup
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	RUSTDOCFLAGS='-D warnings -A rustdoc::private-intra-doc-links' \
		$(CARGO) doc --workspace --locked --no-deps --document-private-items
	$(CARGO) test -q --locked --workspace --test integration -- pages:: prose::

# What arm64 guests start, and what boots them.
arm64-program: setup-arm64-guests
	@$(MAKE) --no-print-directory build ARCH=arm64

# The same for the tests' guests: pid 1 alone, which is all that they need.
arm64-guests: setup-arm64-guests
	@$(MAKE) --no-print-directory build-arm64-guest ARCH=arm64

setup-arm64-guests:
	@$(MAKE) --no-print-directory install-packages PACKAGES=qemu-system-arm

build-arm64-guest: setup $(if $(IS_CROSS),setup-cross)
	$(CROSS_TOOLS) $(CARGO) build --locked $(NO_HOST_PATHS) --target $(TARGET) -p frontrow --bin frontrow-guest

# What takes longer than `make test` may, in parts: `make stress-flash` and so on. Which tests of those that
# `make test` ignores, which runners, and about how long that takes on two idle cores.
STRESS_PARTS := flash fuzz defects guests doctor desktops kernels races machines
stress-flash: STRESS = --runners-only -- $(FLASH_TEST) check ROUNDS=$(STRESS_ROUNDS) -- $(FLASH_TEST) check-sanitized -- $(FLASH_TEST) check-arm64 \
	-- $(FLASH_TEST) mutants -- $(FLASH_TEST) stress OPERATIONS=$(STRESS_OPERATIONS) \
	-- $(FLASH_TEST) fuzz SECONDS=$(STRESS_FUZZ_SECONDS)
stress-flash: TAKES = the flash core: half an hour
STRESS_CARGO = $(CARGO) test --locked
stress-fuzz: STRESS = --runners-only \
	-- env FUZZ_ROUNDS=$(STRESS_FUZZ_ROUNDS) $(STRESS_CARGO) -p iopro --test integration fuzz:: \
	-- env PROPTEST_CASES=$(STRESS_FUZZ_CASES) $(STRESS_CARGO) -p sys -p foreground -p launch -p replay --lib --test integration \
	-- env FUZZ_ROUNDS=$(STRESS_FUZZ_SNAPSHOTS) $(STRESS_CARGO) -p layout --test fuzz \
	-- env MEMORY_LAPS=$(STRESS_MEMORY_LAPS) $(STRESS_CARGO) -p iopro --test integration memory::
stress-fuzz: TAKES = readers, journals and formats: half an hour
stress-defects: STRESS = --runners-only -- $(CARGO) run -q --locked -p xtask defects
stress-defects: TAKES = seeded defects, each of which a test has to see: half an hour
stress-guests: STRESS = --ignored android:: arm64:: experiments:: fasttrack:: interface:: iopro:: launch:: packages:: recording:: security:: sticks:: torture::
stress-guests: TAKES = guests, on every kernel and architecture: two hours
stress-doctor: STRESS = --ignored doctor::
stress-doctor: TAKES = the doctor's known answers and trials: an hour
stress-desktops: STRESS = --ignored desktops::
stress-desktops: TAKES = a Debian 13 from the network, and six compositors in it: half an hour
stress-kernels: STRESS = --ignored kernels::
stress-kernels: TAKES = every kernel in Debian's archive: half an hour
stress-races: STRESS = --ignored stress::
stress-races: TAKES = two debug kernels, half an hour to build and two hours of trials
# Each has a Debian to itself, and time limits of the host's clock.
stress-machines: STRESS = --ignored beside:: hosts:: life::
stress-machines: TAKES = new Debians from nothing, a machine's life, and other programs beside it: four hours
stress-machines: export TEST_THREADS = 1
STRESS_TARGETS := $(STRESS_PARTS:%=stress-%)
.PHONY: $(STRESS_TARGETS) build-arm64-guest
$(STRESS_TARGETS): setup-stress setup-packages arm64-guests
	@echo "About what is tried, and how long it takes: $(TAKES)"
	$(XTASK_TEST) $(STRESS)

# One part after the other; its output is shown at its end.
stress:
	TEST_THREADS=1 $(XTASK_TEST) --runners-only $(STRESS_TARGETS:%=-- $(QUIETLY) %)

include packaging/install.mk
include packaging/packages.mk
include packaging/android/package.mk
include tests/readers/readers.mk
