# SPDX-License-Identifier: GPL-2.0
"""apt with lists of its own: any suite of Debian's, whichever this machine has."""

import os
import re
import subprocess
from pathlib import Path

from .cli import die

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
# Suites whose archive is not the one for security
MIRROR, SECURITY = "http://deb.debian.org/debian", "http://deb.debian.org/debian-security"
UNRELEASED = ("sid", "experimental")


def keyring():
    """The keys of Debian's archive, without which nothing of it is verified."""
    if not KEYRING.exists():
        die(f"no {KEYRING}; install debian-archive-keyring")
    return KEYRING


def debootstrap(*words):
    """The command. Its mounts, of /proc for example, end with it, also if it is killed.

    By itself it verifies nothing where it finds no keys.
    """
    return ["unshare", "--mount", "debootstrap", "--variant=minbase", "--force-check-gpg",
            f"--keyring={keyring()}", *words]


class Apt:
    """Its lists are in a folder; the machine's stay as they are, and its proxies are used."""

    def __init__(self, suite, state, log, kind="deb"):
        self.suite = suite
        self.state = state
        self.log = log
        self.kind = kind
        self.uri = self.find_uri(suite)

    def find_uri(self, suite):
        """Where this machine gets that suite from, or one of the same archive."""
        security = suite.endswith("-security")
        lines = subprocess.run(
            ["apt-get", "indextargets", "--format", "$(REPO_URI) $(CODENAME)",
             "Created-By: Packages", "Origin: Debian"], text=True, check=False,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout.splitlines()
        known = [uri for uri, codename in map(str.split, lines)
                 if codename.endswith("-security") == security]
        return known[0] if known else SECURITY if security else MIRROR

    def command(self, program, *words):
        options = {"Dir::Etc::sourcelist": self.state / "sources.list",
                   "Dir::Etc::sourceparts": "-",
                   "Dir::Etc::preferences": "/dev/null",
                   "Dir::Etc::preferencesparts": self.state / "preferences",
                   "Dir::State": self.state, "Dir::State::status": "/dev/null",
                   "Dir::Cache": self.state / "cache", "APT::Sandbox::User": "root",
                   "APT::Default-Release": "",
                   "APT::Architecture": "amd64", "APT::Architectures": "amd64"}
        return [program, "-q", *(word for pair in options.items()
                                 for word in ("-o", f"{pair[0]}={pair[1]}")), *words]

    def run(self, program, *words, folder=None, check=True):
        """What it prints; None after an error that is not checked for."""
        done = subprocess.run(self.command(program, *words), text=True, check=False,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, cwd=folder,
                              env=dict(os.environ, LC_ALL="C"))
        with open(self.log, "a") as log:
            print("+", program, *words, done.stdout, done.stderr, sep="\n", file=log)
        if not done.returncode:
            return done.stdout
        if check:
            why = re.findall(r"^E: (.*)$", done.stderr, re.M)[:1]
            die(" ".join([f"{program} {words[0]} failed for {self.uri}:", *why])
                + f"; look at the network and at apt's proxy, then run it again; log: {self.log}")
        return None

    def entries(self):
        """Sources of a release are in the archive for security, too."""
        suites = [self.suite]
        if self.kind == "deb-src" and "-" not in self.suite and self.suite not in UNRELEASED:
            suites.append(f"{self.suite}-security")
        return "".join(f"{self.kind} [signed-by={KEYRING}] {self.find_uri(suite)} {suite} main\n"
                       for suite in suites)

    def update(self):
        for folder in ("lists/partial", "cache/archives/partial", "preferences"):
            (self.state / folder).mkdir(parents=True, exist_ok=True)
        (self.state / "sources.list").write_text(self.entries())
        self.run("apt-get", "update", "--error-on=any")

    def packages(self):
        """(name, version) of all."""
        text = self.run("apt-cache", "dumpavail")
        return re.findall(r"^Package: (.*)\n(?:.*\n)*?Version: (.*)$", text, re.M)

    def sources(self, package):
        """The versions of a source package, the newest first."""
        text = self.run("apt-cache", "showsrc", package, check=False) or ""
        found = set(re.findall(r"^Version: (.*)$", text, re.M))
        return subprocess.run(["sort", "-Vr"], input="".join(f"{version}\n" for version in found),
                              text=True, check=True, stdout=subprocess.PIPE).stdout.split()
