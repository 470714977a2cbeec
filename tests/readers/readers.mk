# SPDX-License-Identifier: GPL-2.0-only
# The programs that exports and metrics are for, so that tests can open them; part
# of the Makefile. GTKWave's file tools and Prometheus's promtool are taken out of
# their packages, as installing these brings a whole desktop and a server.

READERS := target/readers
READERS_LIST := tests/readers/requirements.txt
READERS_PACKAGES := gtkwave libjudydebian1 prometheus

.PHONY: readers
readers: $(READERS)/complete

$(READERS)/complete: $(READERS_LIST) tests/readers/readers.mk | setup-tests
	@echo "Getting the formats' own readers"
	rm -rf $(READERS)
	python3 -m venv $(READERS)/python
	$(READERS)/python/bin/python -m pip install -q --disable-pip-version-check --no-deps \
		--only-binary :all: --require-hashes -r $(READERS_LIST)
	mkdir -p $(READERS)/debian/packages
	cd $(READERS)/debian/packages && { apt-get download -qq $(READERS_PACKAGES) || \
		{ $(SUDO) apt-get update -qq && apt-get download -qq $(READERS_PACKAGES); }; }
	for package in $(READERS)/debian/packages/*.deb; do dpkg -x $$package $(READERS)/debian || exit; done
	rm -r $(READERS)/debian/packages
	touch $@
