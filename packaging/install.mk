# SPDX-License-Identifier: GPL-2.0-only
# Building the scheduler's module and installing on this machine; part of the Makefile.

PREFIX ?= /usr/local
KERNEL ?= $(shell uname -r)
VERSION = $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
BINARY = $(wildcard $(RELEASE))
LAB_BINARY = $(BINARY:%=%-lab)
GUEST_BINARY = $(BINARY:%=%-guest)
MODULE = target/modules/$(KERNEL)/frontrow_iosched.ko
SOURCES = $(DESTDIR)/usr/src/frontrow-$(VERSION)
UNITS = $(DESTDIR)$(PREFIX)/lib/systemd/system
SYSTEM_UNITS = frontrow-sched@.service frontrow-watch@.path frontrow-watch@.service frontrow-watch.service frontrowd.service \
	frontrow-settled.service frontrow-settled.timer frontrow-counted.service frontrow-counted.timer
SESSION_UNITS = $(DESTDIR)$(PREFIX)/lib/systemd/user
USER_UNITS = frontrow-follow.service frontrow-notify.service
DELEGATION = $(DESTDIR)$(PREFIX)/lib/systemd/system-generators/frontrow-delegate
SYSUSERS = $(DESTDIR)/usr/lib/sysusers.d/frontrow.conf
ACCOUNTING = $(DESTDIR)$(PREFIX)/lib/systemd/user.conf.d/50-frontrow.conf
# Where D-Bus looks, whatever the prefix.
BUS_POLICY = $(DESTDIR)/usr/share/dbus-1/system.d/org.frontrow.Foreground1.conf
# Where each shell looks.
COMPLETIONS_OF = $(addprefix $(DESTDIR)$(PREFIX)/share/,bash-completion/completions/$1 zsh/site-functions/_$1 fish/vendor_completions.d/$1.fish)
COMPLETIONS = $(call COMPLETIONS_OF,frontrow)
LAB_COMPLETIONS = $(call COMPLETIONS_OF,frontrow-lab)
SHELL_OF = $(if $(findstring /zsh/,$1),zsh,$(if $(findstring /fish/,$1),fish,bash))
FILL_IN = sed 's|@VERSION@|$(VERSION)|; s|@BINDIR@|$(PREFIX)/bin|'

.PHONY: modules install install-lab install-files install-module uninstall put-back

# Builds the scheduler's module for KERNEL, the running one by default.
modules: need-binary
	$(BINARY) sched build --kernel $(KERNEL) --source kernel/iosched --out $(dir $(MODULE))

# Installs below DESTDIR, and the module into the running system if there is no DESTDIR.
install: install-files $(if $(DESTDIR),,install-module)

install-files: need-binary $(if $(DESTDIR),,need-headers)
	install -D -m 755 $(BINARY) $(DESTDIR)$(PREFIX)/bin/frontrow
	ln -sf frontrow $(DESTDIR)$(PREFIX)/bin/frontrowd
	$(BINARY) man $(DESTDIR)$(PREFIX)/share/man/man1
	install -d $(dir $(COMPLETIONS))
	$(foreach file,$(COMPLETIONS),$(BINARY) completions $(call SHELL_OF,$(file)) > $(file) &&) true
	install -d $(SOURCES)/core $(UNITS) $(SESSION_UNITS)
	install -m 644 kernel/iosched/Kbuild kernel/iosched/*.[ch] $(SOURCES)
	install -m 644 kernel/iosched/core/*.[ch] $(SOURCES)/core
	$(FILL_IN) packaging/dkms.conf > $(SOURCES)/dkms.conf
	for unit in $(SYSTEM_UNITS); do \
		$(FILL_IN) packaging/$$unit > $(UNITS)/$$unit || exit 1; done
	for unit in $(USER_UNITS); do \
		$(FILL_IN) packaging/$$unit > $(SESSION_UNITS)/$$unit || exit 1; done
	install -D -m 644 packaging/frontrow.sysusers $(SYSUSERS)
	test -n "$(DESTDIR)" || systemd-sysusers $(SYSUSERS)
	install -D -m 755 packaging/user-delegate.generator $(DELEGATION)
	install -D -m 644 packaging/user-accounting.conf $(ACCOUNTING)
	install -D -m 644 packaging/org.frontrow.Foreground1.conf $(BUS_POLICY)

# The lab needs `frontrow` beside it, which it puts into guests, and what is pid 1 there.
install-lab: need-binary
	install -D -m 755 $(LAB_BINARY) $(DESTDIR)$(PREFIX)/bin/frontrow-lab
	install -D -m 755 $(GUEST_BINARY) $(DESTDIR)$(PREFIX)/lib/frontrow/frontrow-guest
	$(LAB_BINARY) man $(DESTDIR)$(PREFIX)/share/man/man1
	install -d $(dir $(LAB_COMPLETIONS))
	$(foreach file,$(LAB_COMPLETIONS),$(LAB_BINARY) completions $(call SHELL_OF,$(file)) > $(file) &&) true

# DKMS builds the module again for every kernel to come; without it, for this one.
install-module: $(if $(shell command -v dkms),install-with-dkms,install-without-dkms)

install-with-dkms: install-files
	-dkms remove frontrow/$(VERSION) --all > /dev/null 2>&1
	dkms install frontrow/$(VERSION) -k $(KERNEL)

install-without-dkms: install-files modules
	install -D -m 644 $(MODULE) /lib/modules/$(KERNEL)/updates/frontrow_iosched.ko
	depmod $(KERNEL)

# Without the program nothing could put the disks back: if this fails, all stays installed.
put-back:
	test ! -x $(PREFIX)/bin/frontrow || $(PREFIX)/bin/frontrow off
	units="$$(systemctl list-units --all --plain --no-legend 'frontrow-sched@*' frontrow-settled.timer frontrow-watch.service frontrowd.service | cut -d' ' -f1)"; \
		test -z "$$units" || systemctl disable --now $$units
	test ! -x $(PREFIX)/bin/frontrow || $(PREFIX)/bin/frontrow sched disable
	test ! -d /sys/module/frontrow_iosched || modprobe -r frontrow_iosched

uninstall: $(if $(DESTDIR),,put-back)
	-test -n "$(DESTDIR)" || dkms remove frontrow/$(VERSION) --all
	rm -rf $(SOURCES) $(DESTDIR)/lib/modules/$(KERNEL)/updates/frontrow_iosched.ko
	rm -f $(addprefix $(DESTDIR)$(PREFIX)/bin/,frontrow frontrowd frontrow-lab)
	rm -f $(DESTDIR)$(PREFIX)/share/man/man1/frontrow*.1 $(COMPLETIONS) $(LAB_COMPLETIONS)
	rm -f $(addprefix $(UNITS)/,$(SYSTEM_UNITS)) $(DELEGATION) $(ACCOUNTING)
	rm -f $(addprefix $(SESSION_UNITS)/,$(USER_UNITS)) $(BUS_POLICY) $(SYSUSERS)
	rm -rf $(DESTDIR)$(PREFIX)/lib/frontrow $(DESTDIR)/var/lib/frontrow

.PHONY: need-binary need-headers install-with-dkms install-without-dkms
need-binary:
	@test -n "$(BINARY)" || { echo "frontrow is not built yet: run make first" >&2; exit 1; }

need-headers:
	@test -d /lib/modules/$(KERNEL)/build || { echo "the headers of kernel $(KERNEL) are missing, so nothing is installed: install them first (Debian and Ubuntu: linux-headers-$(KERNEL); Fedora: kernel-devel; Arch: linux-headers)" >&2; exit 1; }
