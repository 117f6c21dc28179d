# SPDX-License-Identifier: GPL-2.0
"""A Debian of its own, in which packages are installed, used and removed."""

import shutil
import subprocess

from lib import apt, cli
from lib.build import logged

# What apt and dpkg, and only they, write when they do anything
OTHERS = ("var/lib/dpkg", "var/lib/apt", "var/log", "var/cache", "proc", "packages")


class Debian:
    """A copy, at root, of what debootstrap made once, at base."""

    def __init__(self, base, root, log, include, suite="bookworm"):
        self.base, self.root, self.log, self.include = base, root, log, include
        self.suite = suite

    def run(self, *command, **kwargs):
        """Returns what subprocess.run() does; .stdout has all output."""
        return logged(self.log, command, **kwargs)

    def inside(self, *command):
        """Run a command in it, with a /proc that ends with it."""
        return self.run("unshare", "--mount", "--pid", "--fork", "--kill-child",
                        f"--root={self.root}", "--mount-proc", "/usr/bin/env", "-i", "LC_ALL=C.UTF-8",
                        "DEBIAN_FRONTEND=noninteractive", "HOME=/root",
                        "PATH=/usr/sbin:/usr/bin:/sbin:/bin", *command)

    def mirror(self, suite=None, default="http://deb.debian.org/debian"):
        """Where this machine gets a suite from."""
        suite = suite or self.suite
        lines = self.run("apt-get", "indextargets", "--format", "$(REPO_URI) $(CODENAME)",
                         "Created-By: Packages", "Origin: Debian").stdout.splitlines()
        found = [line.split() for line in lines if line.endswith(f" {suite}")]
        return found[0][0] if found else default

    def make(self, packages):
        """Packages are copied to /packages in it."""
        if not self.base.exists():
            new = self.base.with_name(f"{self.base.name}.new")
            shutil.rmtree(new, ignore_errors=True)
            if self.run(*apt.debootstrap(f"--include={self.include}", self.suite, new,
                                         self.mirror())).returncode:
                cli.die(f"debootstrap failed, see {self.log}")
            new.rename(self.base)
        shutil.rmtree(self.root, ignore_errors=True)
        subprocess.run(["cp", "-a", "--reflink=auto", self.base, self.root], check=True)
        (self.root / "packages").mkdir()
        for path in packages:
            shutil.copy(path, self.root / "packages")

    def files(self):
        """What is in it: names, kinds, rights, and where links lead."""
        prune = [word for name in OTHERS for word in ("-path", f"./{name}", "-o")][:-1]
        return set(subprocess.run(
            ["find", ".", "(", *prune, ")", "-prune", "-o", "-printf",
             "%P %y %m %l\n"], cwd=self.root, check=True, stdout=subprocess.PIPE,
            text=True).stdout.splitlines())

    def install(self, *packages):
        """Those in /packages by their names, others from the archive."""
        paths = [f"/packages/{path.name}" for name in packages
                 for path in (self.root / "packages").glob(f"{name}_*.deb")]
        names = [name for name in packages
                 if not any((self.root / "packages").glob(f"{name}_*.deb"))]
        return self.inside("apt-get", "install", "-qy", "--no-install-recommends",
                           *paths, *names).returncode == 0

    def purge(self, before, *packages):
        """Remove packages; returns the files that came or went since before."""
        done = self.inside("apt", "purge", "-qy", *packages)
        return sorted(before ^ self.files()) + \
            ["apt failed"] * (done.returncode != 0)


def report_left(checks, left, what):
    for line in left[:10]:
        print(f"       {line}")
    checks.result(not left, f"removing {what} leaves nothing behind")
