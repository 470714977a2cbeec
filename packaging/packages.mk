# SPDX-License-Identifier: GPL-2.0-only
# `make packages` makes .deb and .rpm from what `make install` installs; part of the Makefile.
# The same commit gives the same bytes, wherever it is built.

PACKAGES_OUT ?= target/packages
PACKAGING_PACKAGES := binutils dpkg gzip rpm unzip zip
STAGE = $(PACKAGES_OUT)/stage
# When the commit was made; of an unpacked archive, when its change log was.
COMMITTED_S := $(shell git log -1 --format=%ct 2>/dev/null || stat -c %Y CHANGELOG.md)
FILL_IN_PACKAGE = sed 's|@VERSION@|$(VERSION)|g; s|@ARCH@|$(DEBIAN_ARCH)|g; s|@DATE@|$(shell date -R -u -d @$(COMMITTED_S))|g'
PACKAGE_NAMES := frontrow frontrow-dkms frontrow-lab

.PHONY: packages setup-packages pack akmod stage $(PACKAGE_NAMES:%=deb-of-%) rpms
packages: setup-packages build
	@$(MAKE) --no-print-directory pack

setup-packages:
	@$(MAKE) --no-print-directory setup PACKAGES='$(PACKAGING_PACKAGES)'

# Of what is built already.
pack: $(PACKAGE_NAMES:%=deb-of-%) rpms
	@rm -rf $(STAGE)
	@ls $(PACKAGES_OUT)

# The files as they will lie. The programs themselves write their man pages, so they have to run here.
stage: need-binary
	$(if $(IS_CROSS),$(error packages for $(ARCH) are made on a machine of that architecture))
	@rm -rf $(PACKAGES_OUT)
	@$(MAKE) --no-print-directory install DESTDIR=$(abspath $(STAGE))/frontrow PREFIX=/usr > /dev/null
	@$(MAKE) --no-print-directory install-lab DESTDIR=$(abspath $(STAGE))/frontrow-lab PREFIX=/usr > /dev/null
	@strip $(STAGE)/frontrow/usr/bin/frontrow $(addprefix $(STAGE)/frontrow-lab/usr/,bin/frontrow-lab lib/frontrow/frontrow-guest)
	@install -d $(STAGE)/frontrow-dkms/usr
	@mv $(STAGE)/frontrow/usr/src $(STAGE)/frontrow-dkms/usr/src
	@gzip -9n $(STAGE)/frontrow*/usr/share/man/man1/*.1
	@ln -s frontrow-fg-daemon.1.gz $(STAGE)/frontrow/usr/share/man/man1/frontrowd.1.gz

DEB_DOCS = $(STAGE)/$*-deb/usr/share/doc/$*
$(PACKAGE_NAMES:%=deb-of-%): deb-of-%: stage
	@cp -a $(STAGE)/$* $(STAGE)/$*-deb
	@install -d $(DEB_DOCS) $(STAGE)/$*-deb/DEBIAN
	@install -m 644 packaging/deb/copyright $(DEB_DOCS)/copyright
	@gzip -9nc CHANGELOG.md > $(DEB_DOCS)/changelog.gz
	@sed 's/@NAME@/$*/' packaging/deb/changelog | $(FILL_IN_PACKAGE) | gzip -9n > $(DEB_DOCS)/changelog.Debian.gz
	@test ! -f packaging/deb/$*.lintian || install -D -m 644 packaging/deb/$*.lintian $(STAGE)/$*-deb/usr/share/lintian/overrides/$*
	@for script in control postinst prerm postrm; do test ! -f packaging/deb/$*.$$script || \
		$(FILL_IN_PACKAGE) packaging/deb/$*.$$script > $(STAGE)/$*-deb/DEBIAN/$$script || exit 1; done
	@chmod -R u=rwX,go=rX $(STAGE)/$*-deb
	@find $(STAGE)/$*-deb/DEBIAN -name 'p*' -exec chmod 755 {} +
	@SOURCE_DATE_EPOCH=$(COMMITTED_S) dpkg-deb --root-owner-group -Zxz --build $(STAGE)/$*-deb $(PACKAGES_OUT) > $(STAGE)/log

rpms: stage
	@SOURCE_DATE_EPOCH=$(COMMITTED_S) rpmbuild -bb --quiet --target $(MACHINE) $(RPM_OPTIONS) \
		--define '_topdir $(abspath $(STAGE))/rpmbuild' --define '_rpmdir $(abspath $(PACKAGES_OUT))' \
		--define '_rpmfilename %%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm' \
		--define 'package_version $(VERSION)' --define 'stage $(abspath $(STAGE))' packaging/rpm/frontrow.spec

# The source package from which Fedora's akmods builds the module; untried there.
AKMOD = $(abspath $(PACKAGES_OUT))/akmod
akmod: setup-packages
	@rm -rf $(AKMOD)
	@install -d $(AKMOD)/frontrow-$(VERSION)/core
	@install -m 644 kernel/iosched/Kbuild kernel/iosched/*.[ch] $(AKMOD)/frontrow-$(VERSION)
	@install -m 644 kernel/iosched/core/*.[ch] $(AKMOD)/frontrow-$(VERSION)/core
	@tar -C $(AKMOD) --sort=name --owner=0 --group=0 --numeric-owner --mtime=@$(COMMITTED_S) \
		-cf - frontrow-$(VERSION) | gzip -9n > $(AKMOD)/frontrow-kmod-$(VERSION).tar.gz
	@SOURCE_DATE_EPOCH=$(COMMITTED_S) rpmbuild -bs --quiet --nodeps --define '_topdir $(AKMOD)/rpmbuild' \
		--define '_sourcedir $(AKMOD)' --define '_srcrpmdir $(abspath $(PACKAGES_OUT))' \
		--define 'package_version $(VERSION)' packaging/rpm/frontrow-kmod.spec
	@rm -rf $(AKMOD)
