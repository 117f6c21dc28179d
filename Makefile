# SPDX-License-Identifier: GPL-2.0
# Entry points only: every recipe calls the script or Makefile that knows how.

BUILD ?= build
space := $() $()
override BUILD := $(subst ?, ,$(abspath $(subst $(space),?,$(BUILD))))
JOBS ?= $(shell nproc)
SERVER ?= lighttpd
KERNEL ?= $(if $(filter run,$(MAKECMDGOALS)),stock,tree)
export BUILD JOBS SERVER KERNEL_SRC LIGHTTPD_SRC LIBEV_SRC LIBEVENT_SRC REDIS_SRC \
	LIBUV_SRC NGINX_SRC HIREDIS_SRC MUTANT

.PHONY: help help-all needs demo run test mutants worst bench bench-http bench-libev bench-libuv bench-files bench-redis bench-walk bench-native torture check model docs \
	programs-test series series-check setup \
	setup-arm64 setup-deb setup-deb-libkevent setup-deb-test setup-docs setup-model setup-native setup-programs \
	setup-python setup-run setup-rust setup-screenshots screenshots stock module deb deb-libkevent deb-kernel rust kernel kernel-debug \
	kernel-rt kernel-kcsan kernel-plain-debug kernel-plain-kcsan kernel-gcov coverage kernel-bench kernel-arm64 mutant libkevent lighttpd libev libevent libuv redis hiredis nginx \
	ev-httpd example-httpd tools guest guest-32 guest-asan guest-tsan guest-arm64 \
	bench-program python dist install uninstall clean
.NOTPARALLEL:

# What make run needs for each SERVER
server-lighttpd := lighttpd
server-libev-httpd := libev ev-httpd
server-nginx := nginx
server-libevent-httpd := libevent
server-example := example-httpd
servers := $(patsubst server-%,%,$(filter server-%,$(.VARIABLES)))
ifneq ($(filter run,$(MAKECMDGOALS)),)
ifeq ($(server-$(SERVER)),)
$(error no server $(SERVER); there are: $(sort $(servers)))
endif
endif

# Where make run and make bench run: on the patched kernel, or on one of Debian's
ifneq ($(filter-out tree stock stock-%,$(KERNEL)),)
$(error no kernel $(KERNEL); there are: tree, stock, and those that scripts/stock.py --help names)
endif
stock := $(or $(filter stock-%,$(KERNEL)),stock-6.12)
on-tree := $(filter tree,$(KERNEL))

# The demo's names are relative. Only the beginning of a name is this folder.
include libkevent/odd.mk
below = $(patsubst |%,%,$(subst |$(CURDIR)/,$(1),|$(2)))
demo := $(call below,../,$(BUILD)/demo)
$(call refuse-odd,$(if $(filter-out demo help help-all,$(MAKECMDGOALS)),BUILD CURDIR,demo),; use \
	another; in such a tree only make demo works)

ifneq ($(filter-out help help-all,$(MAKECMDGOALS)),)
refused := $(shell scripts/build-folder '$(call below,./,$(BUILD))' 2>&1)
ifneq ($(.SHELLSTATUS),0)
$(error $(refused))
endif
endif

help:
	@sed -n 's/^#= \{0,1\}//p' Makefile

help-all:
	@sed -n 's/^#? \{0,1\}//p' Makefile

#= make demo            try the library on this machine, without a kernel of ours: 10 seconds
#= make run             lighttpd with kevent against epoll, in a VM: 4 minutes
#= make libkevent tools build the library and its programs; make install installs them
#= make deb-libkevent   Debian packages of them and of the module; make deb: of a kernel, too
#= make module          build kevent as a module for a kernel of Debian's
#= make kernel guest    build the kernel and the test programs, which tests/vm/run starts
#= make test            all tests, in VMs: 30 minutes; tests/README.md has shorter ones
#= make check           checks of the sources; make docs: documentation as HTML
#= make dist            these sources as a tarball
#= make help-all        all goals and variables

#? make demo          the library and its first example on the running kernel,
#?                    whatever that is: needs only cc and make, and takes seconds
#? make run           lighttpd with kevent against epoll in a VM, as a table;
#?                    SERVER=nginx, libev-httpd, libevent-httpd or example: another
#? make test          all tests in VMs, on a plain and on a debug kernel
#? make mutants       see that the tests notice each known way to break the kernel
#? make coverage      the lines and branches of kernel/kevent that tests reach
#? make worst         the longest stretch with interrupts off for the worst inputs, and
#?                    the longest time in which a real-time task does not run
#? make bench         measure kevent, epoll, io_uring and poll in VMs, half an hour;
#?                    KERNEL=stock: the module, in the workload notify
#? make bench-http    measure lighttpd with kevent, epoll and poll; SERVER=nginx: nginx;
#?                    SERVER=example: the servers in libkevent/examples
#? make bench-libev   measure the backends of libev
#? make bench-redis   measure redis with kevent and epoll
#? make bench-libuv   measure libuv with kevent and epoll, by its own benchmarks
#? make bench-files   measure reads of small files on a disk by calls, chains, io_uring
#? make bench-walk    measure a walk over 100,000 files by chains of calls, and du
#? make bench-native  measure on this machine, whatever its kernel is, in a minute: what a
#?                    call and a switch cost, a model of that, the library on epoll, lanes;
#?                    this and make bench end with a page, build/results/benchmarks.html
#? make torture       long storms, mutants, PREEMPT_RT, arm64, 32 bits: an hour;
#?                    HOURS=h: random tests again until h hours have passed
#? make model         check the ring's barriers in a model of both sides
#? make programs-test all tests of patched programs, with kevent and epoll;
#?                    KERNEL=stock: with the module
#? make setup         install the packages that builds and tests need; also: setup-run,
#?                    setup-programs, setup-docs and the others of scripts/setup
#? make check         style, sparse, warnings, documentation, patches
#? make docs          the documentation as HTML, in build/docs
#? make screenshots   the pictures in Documentation/screenshots: kevent-top in a VM, and a
#?                    page of figures in chromium, which it installs
#? make series        write kevent as a patch series for Linux: build/series
#? make series-check  apply, build and boot each patch of it: hours
#?
#? make kernel        build the kernel; also: kernel-debug, kernel-rt,
#?                    kernel-kcsan, kernel-gcov, kernel-bench, kernel-disk,
#?                    kernel-arm64; without kevent, and the module for it:
#?                    kernel-plain-debug, kernel-plain-kcsan
#? make module        build kevent as a module for a kernel of Debian's, which is
#?                    fetched: build/module/6.12/kevent.ko; make stock only fetches
#? make libkevent     build the library; make install installs it and the tools
#?                    (PREFIX, DESTDIR), make uninstall removes them
#? make rust          package the Rust crate: build/rust/kevent-VERSION.crate
#? make deb           Debian packages of the library and of a kernel for this
#?                    machine, in build/deb; also: deb-libkevent, deb-kernel
#? make dist          all files as build/dist/kevent-VERSION.tar.xz, for builds without git,
#?                    and Alpine's APKBUILD beside it
#? make lighttpd      build lighttpd with the linux-kevent event handler
#? make libevent      build libevent with the kevent backend
#? make libev         build libev with the kevent backend
#? make libuv         build libuv with kevent
#? make redis         build redis with kevent, and with epoll to compare
#? make hiredis       build hiredis with shared memory
#? make nginx         build nginx with the event method kevent
#? make python        build the Python package: build/python
#? make guest         build the test programs that run in a VM; also: guest-32,
#?                    guest-asan, guest-tsan, guest-arm64
#? make tools         build kevent-trace, kevent-show, kevent-top and kevent-lane
#? make clean         remove what was built
#?
#? BUILD=dir          put everything generated there (build): a new folder, an empty
#?                    one, or one that kevent has made
#? KERNEL=name        with make stock, module, run, bench, programs-test: stock-6.12, stock-6.1,
#?                    stock-7.3, or one with -full; stock is the first of them;
#?                    with make run and bench also tree, the patched kernel
#? KERNEL_SRC=path    another tarball or tree of the series in patches/linux/BASE
#? LIGHTTPD_SRC=path  another lighttpd 1.4 tarball or tree; also: LIBEV_SRC,
#?                    LIBEVENT_SRC, LIBUV_SRC, REDIS_SRC, HIREDIS_SRC,
#?                    NGINX_SRC
#? KCONFIG=file       with make deb: configure the kernel as this file says; see
#?                    scripts/deb.py --help
#? MUTANT=name        with make mutants or make test: only this mutant, that is
#?                    name.patch below tests/mutants; with make mutant: build it
#? WORST="name ..."   with make worst: only these tests of the suite worst
#? WL="name ..."      with make bench: only these workloads, see
#?                    Documentation/benchmarks.rst
#? HTTP="..."         with make bench-http: --full, or other options, see
#?                    Documentation/benchmarks.rst
#? PROGRAMS="..."     with make programs-test: names in tests/programs
#? TORTURE="..."      with make torture: options of tests/long/torture, see its
#?                    --help
#? NO_SETUP=1         install no packages; what is missing fails where it is needed
#? JOBS=n             compiler processes (one per CPU)
#?
#? tests/vm/run --help: run a command of your own on the kernel

run: $(if $(on-tree),setup,setup-run) $(server-$(SERVER)) $(if $(on-tree),kernel,module)
	bench/http/run --config $(if $(on-tree),base,$(stock))

# A warning is an error in our tests, and not where a user builds with another compiler
test check: export WERROR := -Werror

test: $(if $(MUTANT),mutants,setup setup-rust libkevent guest guest-32 guest-asan \
		bench-program example-httpd module kernel kernel-debug)
	$(if $(MUTANT),,tests/run)

mutants: setup guest kernel module
	tests/mutants/run $(MUTANT)

coverage: setup guest guest-32 kernel-gcov
	tests/long/coverage

worst: setup guest kernel module
	tests/long/worst $(WORST)
	tests/long/stall
	tests/long/stall --config stock-6.12

bench-http: setup $(server-$(SERVER)) kernel-bench
	@$(MAKE) -s --no-print-directory -C bench/http BUILD=$(BUILD)
	bench/http/bench $(HTTP)

bench-libev: setup libev kernel-bench
	bench/libev/run

bench-redis: setup redis kernel-bench
	bench/redis/run

bench-libuv: setup libuv kernel-bench
	bench/libuv/run

bench-files: setup libkevent kernel-disk
	@$(MAKE) -s --no-print-directory -C bench/files BUILD=$(BUILD)
	bench/files/run

bench-walk: setup guest kernel-bench
	bench/walk

bench-native: setup-native libkevent bench-program
	@bench/native

bench: setup libkevent bench-program $(if $(on-tree),kernel-bench,module)
	bench/run $(if $(on-tree),$(WL),--config $(stock) $(or $(WL),notify))

torture:
	tests/long/torture $(if $(HOURS),--hours $(HOURS)) $(TORTURE)

programs-test: setup-programs setup-model libkevent $(if $(on-tree),kernel,module)
	$(if $(on-tree),,VM_CONFIG=$(stock)) tests/programs/run $(PROGRAMS)

check: setup
	tests/check

series: setup
	@scripts/series

series-check: setup guest
	scripts/series --check

model: setup-model
	tests/static/model/run

deb: deb-libkevent deb-kernel

deb-libkevent: setup-deb-libkevent
deb-kernel: setup-deb
deb-libkevent deb-kernel: deb-%:
	@scripts/deb.py $*

dist:
	@scripts/dist.py

docs: setup-docs
	@$(MAKE) -s --no-print-directory -C Documentation BUILD=$(BUILD)

screenshots: setup-screenshots libkevent tools module
	@Documentation/screenshots/run

# Time and disk are said before anything starts; setup says which packages it installs.
needs:
	@for goal in $(MAKECMDGOALS); do \
		scripts/needs $$goal || exit 1; done

setup setup-native setup-deb-libkevent demo libkevent kernel module: needs

setup:
	@scripts/setup

setup-arm64 setup-deb setup-deb-libkevent setup-deb-test setup-docs setup-model setup-native \
setup-programs setup-python setup-run setup-rust setup-screenshots: setup-%:
	@scripts/setup $*

kernel kernel-debug kernel-rt kernel-kcsan kernel-gcov kernel-bench kernel-disk \
kernel-plain-debug kernel-plain-kcsan: setup
kernel-arm64 guest-arm64: setup-arm64

kernel:
	@scripts/kernel.py build base

kernel-debug:
	@scripts/kernel.py build debug

kernel-rt:
	@scripts/kernel.py build rt

kernel-kcsan:
	@scripts/kernel.py build kcsan

kernel-gcov:
	@scripts/kernel.py build gcov

kernel-bench:
	@scripts/kernel.py build bench

kernel-plain-debug kernel-plain-kcsan: kernel-%:
	@scripts/kernel.py build $*
	@scripts/stock.py module $*

kernel-disk:
	@scripts/kernel.py build disk

kernel-arm64:
	@scripts/kernel.py build arm64

stock: setup-run
	@scripts/stock.py fetch $(stock)

# The headers of 7.3 need a newer Debian, which debootstrap makes.
module: setup-run $(if $(filter stock-7.%,$(stock)),setup-deb-test)
	@scripts/stock.py module $(stock)

mutant: kernel
	@scripts/mutant.py $(MUTANT)

demo:
	@echo "demo: needs a C compiler (cc), ar and make; no root, no network"
	@$(MAKE) -s --no-print-directory -C libkevent BUILD=$(demo) \
		$(demo)/libkevent/examples/two_pipes >/dev/null
	@cd libkevent && $(demo)/libkevent/examples/two_pipes

libkevent:
	@$(MAKE) -s --no-print-directory -C libkevent BUILD=$(BUILD)

rust: setup-rust
	@$(MAKE) -s --no-print-directory -C rust BUILD=$(BUILD)

lighttpd libev libevent libuv redis hiredis nginx:
	@scripts/program $@

ev-httpd:
	@$(MAKE) -s --no-print-directory -C bench/http BUILD=$(BUILD) $@

example-httpd: libkevent
	@$(MAKE) -s --no-print-directory -C bench/http BUILD=$(BUILD) $@

python: setup-python
	@$(MAKE) -s --no-print-directory -C python BUILD=$(BUILD)

guest: setup libkevent
	@$(MAKE) -s --no-print-directory -C tests/suites BUILD=$(BUILD)
	@$(MAKE) -s --no-print-directory -C tests/long/fuzz BUILD=$(BUILD)
	@$(MAKE) -s --no-print-directory -C tests/long/search BUILD=$(BUILD)

bench-program: libkevent
	@$(MAKE) -s --no-print-directory -C bench BUILD=$(BUILD)

tools: libkevent
	@$(MAKE) -s --no-print-directory -C tools BUILD=$(BUILD)

guest-32 guest-asan guest-tsan guest-arm64: guest-%: setup libkevent
	@$(MAKE) -s --no-print-directory -C tests/suites BUILD=$(BUILD) TARGET=$*
	@$(if $(filter asan,$*),$(MAKE) -s --no-print-directory -C tests/long/fuzz \
		BUILD=$(BUILD) TARGET=$*)

# Where to is meant from here, not from the folders of the two.
to = $(foreach name,DESTDIR PREFIX,$(if $($(name)),'$(name)=$(abspath $($(name)))'))

install: libkevent
install uninstall:
	@$(MAKE) -s --no-print-directory -C libkevent BUILD=$(BUILD) $(to) $@
	@$(MAKE) -s --no-print-directory -C tools BUILD=$(BUILD) $(to) $@
	@echo "$@: the library, its manual pages and programs:" \
		"$(if $(DESTDIR),$(abspath $(DESTDIR)))$(abspath $(or $(PREFIX),/usr/local))"

clean:
	@rm -rf $(addprefix $(BUILD)/,include linux libkevent lighttpd \
		series guest tools bench http vm log results model libevent programs stock module \
		libev libuv mio redis hiredis nginx apt rust docs check-docs check-prose coverage demo \
		mutants python deb dist .kevent)
	@rmdir $(BUILD) 2>/dev/null || true
