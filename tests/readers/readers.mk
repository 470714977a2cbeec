# SPDX-License-Identifier: GPL-2.0-only
# The programs that IOPro's exports are for, so that tests can open them; part
# of the Makefile. GTKWave's file tools are taken out of its package, as
# installing that brings a whole desktop.

READERS := target/readers
READERS_LIST := tests/readers/requirements.txt
GTKWAVE_PACKAGES := gtkwave libjudydebian1

.PHONY: readers
readers: $(READERS)/complete

$(READERS)/complete: $(READERS_LIST) tests/readers/readers.mk | setup-tests
	@echo "Getting the formats' own readers"
	rm -rf $(READERS)
	python3 -m venv $(READERS)/python
	$(READERS)/python/bin/python -m pip install -q --disable-pip-version-check --no-deps \
		--only-binary :all: --require-hashes -r $(READERS_LIST)
	mkdir -p $(READERS)/gtkwave/packages
	cd $(READERS)/gtkwave/packages && { apt-get download -qq $(GTKWAVE_PACKAGES) || \
		{ $(SUDO) apt-get update -qq && apt-get download -qq $(GTKWAVE_PACKAGES); }; }
	for package in $(READERS)/gtkwave/packages/*.deb; do dpkg -x $$package $(READERS)/gtkwave || exit; done
	rm -r $(READERS)/gtkwave/packages
	touch $@
