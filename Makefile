# Installs grind: make install PREFIX=/usr/local DESTDIR=. The work is done by `cargo xtask install`.
PREFIX ?= /usr/local
DESTDIR ?=

.PHONY: all install uninstall
all:
	cargo xtask build

install:
	cargo xtask install $(if $(DESTDIR),--destdir "$(DESTDIR)") "$(PREFIX)"

uninstall:
	cargo xtask uninstall $(if $(DESTDIR),--destdir "$(DESTDIR)") "$(PREFIX)"
