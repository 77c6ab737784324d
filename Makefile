# make demo    upload sample instrument data to an embedded server, see every file verified
# make quick   what to run after each change: format, lint, types, import contracts, pure and structural tests
# make test    the whole gate: all of that, the documentation, all tests, and Windows where it is prepared
# make coverage   which lines and branches of core, settings and engine no unit or flow test runs
# make translations   collect the texts of window and engine, and compile their translations
# make screenshots    pictures of the window for the documentation, from the real program
# make docs    the documentation's site, in resources/site, which packages contain
# make pages   the pages that are made from the settings and from recorded trials
# make wheel   the wheels for this system and for Windows, and the sources, in dist
# make test-wheel   the same, and install them by pip, pipx and uv with each Python that is here
# make package        what people install on this system, in dist; see packaging/README.md
# make release        all of it for a release, compressed by xz, with checksums; release-check: twice, compared
# make container      the command line as a container image, of the package in dist; as root, on Debian,
#                     where it is a part of `make release`
# make test-package   build the package, and try it as it is installed; as root, on computers with nothing else
# make test-windows   run the program under Windows, with Wine; as root, on Debian
# make windows-quick  a part of it, only where make test-windows has prepared it
# make staging-hosts  install servers besides OpenSSH's, and try every kind; as root, on Debian
# make slurm-trial    copy with an array job of a private Slurm; as root, on Debian
# make s3-hosts  the S3 services that some tests need, built with Go, and these tests
# make changes      what docs/changes has for the next release; changes-of-release: move it into CHANGELOG.md
# make lock    lock what installations and packages are made of
# make bench   speed against scp, sftp, lftp, tar over ssh, rsync and rclone
PYTHON ?= $(shell sh packaging/find_python.sh)
BIN := .venv/bin

.PHONY: setup staging-hosts s3-hosts demo quick pure coverage test format lint types contracts docs tests translations screenshots bench \
	kill-test claim-test free-test copy-test slurm-trial fuzz pages wheel test-wheel package python-library release release-check container test-package test-windows windows-quick lock changes changes-of-release clean

setup: .venv/ready

.venv/ready: .venv/program-ready packaging/setup_tests.sh
	sh packaging/setup_tests.sh
	touch $@

.venv/program-ready: pyproject.toml packaging/setup.sh packaging/compile_md5.py mydata_like/core/md5.c mydata_like/core/tiny_files.c mydata_like/core/folder_entries.c
	PYTHON="$(PYTHON)" sh packaging/setup.sh
	touch $@

staging-hosts: setup
	sh packaging/install_packages.sh proftpd-core proftpd-mod-crypto dropbear-bin busybox sshfs samba smbnetfs \
		ksh zsh fish tcsh default-jdk-headless maven
	$(MAKE) build/hosts/sftpgo build/hosts/mina
	$(BIN)/python -m tests.hosts --all

GO ?= $(or $(shell command -v go),/usr/local/go/bin/go)

# SFTPGo replaces some modules, so `go install` refuses it.
build/hosts/sftpgo:
	CGO_ENABLED=0 $(GO) -C "$$($(GO) mod download -json github.com/drakkan/sftpgo/v2@v2.6.2 | \
		sed -n 's/^\t"Dir": "\(.*\)",$$/\1/p')" build -o $(CURDIR)/$@ \
		-tags nogcs,nos3,noazblob,nobolt,nomysql,nopgsql,nosqlite,nometrics .

build/hosts/mina: tests/mina/pom.xml
	mvn -q -B -f $< dependency:copy-dependencies -DoutputDirectory=$(CURDIR)/$@
	touch $@

s3-hosts: setup
	GOBIN=$(CURDIR)/$(BIN) $(GO) install github.com/versity/versitygw/cmd/versitygw@v1.8.0
	CGO_ENABLED=0 GOBIN=$(CURDIR)/$(BIN) $(GO) install github.com/minio/minio@v0.0.0-20260212201848-7aac2a2c5b7c
	$(BIN)/pytest -q -n 2 $(S3_TESTS)

S3_TESTS := tests/contract/test_object_storage.py tests/faults/test_object_storage_answers.py \
	tests/flow/test_run_object_storage.py tests/e2e/test_object_storage.py \
	tests/contract/test_bucket_files.py tests/e2e/test_bucket_copy.py

demo: .venv/program-ready
	$(BIN)/mydata-like demo --no-window

test: lint types contracts docs tests windows-quick

quick: lint types contracts pure

format: setup
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lint: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: setup
	$(BIN)/mypy

contracts: setup
	$(BIN)/lint-imports

docs: .venv/docs-ready
	$(BIN)/sphinx-build -q -n -W --keep-going -d build/doctrees docs resources/site

.venv/docs-ready: .venv/ready
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --group docs
	touch $@

# Bytecode is written whatever the environment says: without it, half of the time is compiling.
tests pure: export PYTHONDONTWRITEBYTECODE =

tests: setup
	$(BIN)/pytest -n 4 --dist loadfile --no-loadscope-reorder

pure: setup
	$(BIN)/pytest -q -n 3 -m "pure or structure" -p no:pytest-qt \
		--hypothesis-profile quick tests/unit

COVERED := mydata_like/core/*,mydata_like/settings/*,mydata_like/engine/*

coverage: setup
	$(BIN)/coverage erase
	-$(BIN)/coverage run --branch --source mydata_like -m pytest -q --no-time-limit \
		tests/unit tests/flow
	$(BIN)/coverage report --show-missing --skip-covered --include "$(COVERED)"

TEXTS := .venv/texts.py
TRANSLATIONS := resources/translations/mydata_like
LUPDATE := $(BIN)/pyside6-lupdate -silent -locations none -no-obsolete -source-language en

translations: setup
	$(BIN)/python -m tests.engine_sentences > resources/translations/engine.json
	$(BIN)/python -m tests.gui.texts > $(TEXTS)
	$(LUPDATE) -target-language de $(TEXTS) -ts $(TRANSLATIONS)_de.ts
	$(LUPDATE) -target-language en -pluralonly $(TEXTS) -ts $(TRANSLATIONS)_en.ts
	$(BIN)/pyside6-lrelease -silent $(TRANSLATIONS)_de.ts $(TRANSLATIONS)_en.ts

screenshots: setup
	fc-list :charset=6f22 file | grep -q . && fc-list :charset=1f52c file | grep -q . || \
		sh packaging/install_packages.sh fontconfig fonts-droid-fallback fonts-noto-color-emoji
	$(BIN)/python -m tests.pictures

bench: setup
	sh benchmarks/setup.sh
	$(BIN)/python -m benchmarks
	$(BIN)/python -m benchmarks.gui
	$(BIN)/python -m benchmarks.window

kill-test: setup
	$(BIN)/python -m tests.trials.kill --rounds 40

fuzz: setup
	$(BIN)/python -m tests.fuzz --seconds 300

claim-test: setup
	$(BIN)/python -m tests.trials.claim --rounds 3

free-test: setup
	$(BIN)/python -m tests.trials.free --trials 10000

copy-test: setup
	$(BIN)/python -m tests.trials.copy --rounds 40
	$(BIN)/python -m tests.trials.get --rounds 30
	$(BIN)/python -m tests.trials.get --rounds 6 --flips 10
	FULL_SIZE=yes $(BIN)/pytest -q tests/e2e/test_jobs.py

slurm-trial: setup
	sh packaging/install_packages.sh slurmctld slurmd slurm-client munge
	$(BIN)/python -m tests.trials.slurm

pages: setup
	$(BIN)/python -m tests.settings_pages > docs/admin/settings.toml
	$(BIN)/python -m tests.trials.record > docs/trials.md

# The wheel for Linux is the last one, so that the library of this system is left in the sources.
wheel: .venv/wheel-ready docs
	rm -rf dist/mydata_like-*
	$(BIN)/python -m hatchling build -t sdist
	[ "$$(uname)" != Linux ] || CC=x86_64-w64-mingw32-gcc $(BIN)/python -m hatchling build -t wheel
	$(BIN)/python -m hatchling build -t wheel
	for wheel in dist/*-linux_*.whl; do [ ! -e "$$wheel" ] || \
		{ PATH="$(CURDIR)/$(BIN):$$PATH" auditwheel repair -w dist "$$wheel" && rm "$$wheel"; }; done

.venv/wheel-ready: .venv/program-ready
	[ "$$(uname)" != Linux ] || command -v x86_64-w64-mingw32-gcc || \
		sh packaging/install_packages.sh gcc-mingw-w64-x86-64-win32
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --group wheel
	touch $@

package: setup python-library docs
	$(PYTHON) packaging/build.py

# A bundle has Python's library, for which Debian has a package of its own.
python-library:
	[ "$$(uname)" != Linux ] || \
		$(PYTHON) -c 'import ctypes, sysconfig as s; ctypes.CDLL(s.get_config_var("INSTSONAME"))' || \
		sh packaging/install_packages.sh \
			"$$($(PYTHON) -c 'import sysconfig as s; print("libpython" + s.get_config_var("VERSION"))')"

# The same sources and versions give the same bytes: times are those of the commit.
release: export SOURCE_DATE_EPOCH = $(shell git log -1 --format=%ct)
release: export PYTHONHASHSEED = 0
release: setup python-library
	rm -rf dist resources/site build/doctrees
	command -v rpmbuild >/dev/null || sh packaging/install_packages.sh rpm
	$(MAKE) wheel
	$(PYTHON) packaging/build.py --release
	cp dist/mydata-like/sbom.cdx.json dist/mydata-like-linux.cdx.json
	[ "$$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null || $(MAKE) container
	cd dist && sha256sum *.whl *.tar *.tar.* *.deb *.rpm *.cdx.json >SHA256SUMS
	! grep -n 'mydata-like\.example\.org' pyproject.toml || \
		echo "Before it is published: set what docs/release.md lists."

release-check: release
	mkdir -p build
	cp dist/SHA256SUMS build/first.SHA256SUMS
	$(MAKE) release
	diff build/first.SHA256SUMS dist/SHA256SUMS

container: export SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct)
container:
	command -v buildah >/dev/null && command -v debootstrap >/dev/null || \
		sh packaging/install_packages.sh buildah debootstrap
	sh packaging/container/build.sh

test-package: package test-wheel
	[ "$$(id -u)" -ne 0 ] || sh packaging/setup_tests.sh debootstrap
	$(BIN)/pytest -rs packaging/linux --ignore packaging/linux/test_wheel.py

test-wheel: wheel setup
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --group lock
	$(BIN)/pytest -rs packaging/linux/test_wheel.py

test-windows:
	$(PYTHON) packaging/windows/rig.py $(STEPS)

windows-quick:
	$(PYTHON) packaging/windows/rig.py --quick

UV := .venv/lock/bin/uv
LOCK := $(UV) pip compile pyproject.toml --universal --python-version 3.11 --generate-hashes \
	--no-header --no-annotate --quiet $(OPTIONS)

lock: setup
	$(BIN)/python -m venv --without-pip .venv/lock
	$(BIN)/python -m pip --python .venv/lock/bin/python install --quiet --group lock
	$(LOCK) -o packaging/requirements.txt
	$(LOCK) --extra s3 --group packaging -o packaging/requirements-bundle.txt

changes: setup
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --group changes
	$(BIN)/towncrier build --draft --version next

changes-of-release: changes
	version=$$($(BIN)/python -c 'import mydata_like; print(mydata_like.__version__)') && \
		! grep "^## $$version " CHANGELOG.md && $(BIN)/towncrier build --yes --version "$$version"

clean:
	rm -rf .venv packaging/build build dist resources/site
