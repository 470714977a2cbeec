# SPDX-License-Identifier: GPL-2.0-only
# `make android` makes the package that KernelSU and Magisk install on a phone; part of the Makefile.
# HEADERS and BTF are of the phone's kernel, as `frontrow sched build` takes them.

ANDROID_STAGE = $(PACKAGES_OUT)/android
ANDROID_MODULE = $(PACKAGES_OUT)/android-module/frontrow_iosched.ko
ANDROID_PROGRAM = target/aarch64-unknown-linux-gnu/release/frontrow
# Newer versions have greater ones: 1.2.3 has 10203.
ANDROID_CODE = $(shell echo $(VERSION) | awk -F. '{ print $$1 * 10000 + $$2 * 100 + $$3 }')
ANDROID_FILL_IN = sed 's|@VERSION@|$(VERSION)|g; s|@CODE@|$(ANDROID_CODE)|g; s|@RELEASE@|$(ANDROID_RELEASE)|g'
ANDROID_RELEASE = $(firstword $(shell strings -a $(ANDROID_MODULE) | sed -n 's/^vermagic=//p'))

.PHONY: android android-pack
android: setup-packages build
	$(if $(HEADERS),,$(error say which kernel it is for: make android HEADERS=DIR [BTF=FILE]))
	@$(MAKE) --no-print-directory build ARCH=arm64
	$(BINARY) sched build --source kernel/iosched --headers $(HEADERS) $(BTF:%=--btf %) --out $(dir $(ANDROID_MODULE))
	@$(MAKE) --no-print-directory android-pack

# Of what is built already.
ANDROID_PACKAGE = $(PACKAGES_OUT)/frontrow-android-$(VERSION).zip
android-pack:
	@rm -rf $(ANDROID_STAGE) $(ANDROID_PACKAGE)
	@install -D -m 755 $(ANDROID_PROGRAM) $(ANDROID_STAGE)/system/bin/frontrow
	@install -m 644 $(ANDROID_MODULE) $(ANDROID_STAGE)/frontrow_iosched.ko
	@install -m 644 LICENSE $(ANDROID_STAGE)
	@for file in module.prop customize.sh service.sh uninstall.sh action.sh; do \
		$(ANDROID_FILL_IN) packaging/android/$$file > $(ANDROID_STAGE)/$$file || exit 1; done
	@install -d $(ANDROID_STAGE)/META-INF/com/google/android
	@echo '#MAGISK' > $(ANDROID_STAGE)/META-INF/com/google/android/updater-script
	@find $(ANDROID_STAGE) -exec touch -d @$(COMMITTED_S) {} +
	@cd $(ANDROID_STAGE) && find . -type f | sort | TZ=UTC zip -q -X -9 -@ $(abspath $(ANDROID_PACKAGE))
	@rm -rf $(ANDROID_STAGE)
	@echo $(ANDROID_PACKAGE): for kernel $(ANDROID_RELEASE)
