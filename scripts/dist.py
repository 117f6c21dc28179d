#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Write this tree as a tarball, $BUILD/dist/kevent-VERSION.tar.xz, and beside it Alpine's APKBUILD

usage: scripts/dist.py              all files that git tracks, as they are now
       scripts/dist.py again FILE   write a tarball that another tool made, FILE.tar.gz, anew

The same files give the same bytes, in a clone and in a tree that was unpacked: names are
sorted, the owner is root, and the time is that of the release, see scripts/version, or
SOURCE_DATE_EPOCH. A tree that was unpacked has no git, so all its files are taken that are
not built. The spec for RPMs says in the tarball who publishes it, as packaging/publisher does.
What that lacks is named on standard error.
"""

import gzip
import hashlib
import io
import lzma
import os
import re
import sys
import tarfile
from pathlib import Path

from lib import cli, tree
from lib.paths import BUILD, TOP, make_folders

DIST = BUILD / "dist"
SPEC = "packaging/rpm/kevent.spec"


def plain(member):
    """What of an entry does not depend on who has written the file, and when."""
    member.uid = member.gid = 0
    member.uname = member.gname = "root"
    member.mtime = tree.date()
    member.mode = 0o755 if member.mode & 0o100 else 0o644
    member.pax_headers = {}
    return member


def write(path, data):
    """A file is there as a whole, or as before."""
    part = path.with_name(f"{path.name}.part")
    part.write_bytes(data)
    part.replace(path)
    return path


def spec():
    """rpmbuild takes who publishes it from the spec in the tarball, a second time the same."""
    publisher = tree.publisher()
    fields = "".join(f"{field}\t{publisher[name].replace('%', '%%')}\n" for field, name in
                     (("URL:\t", "HOMEPAGE"), ("Packager:", "CONTACT")) if publisher[name])
    return re.sub(r"^(License:.*\n)(?:(?:URL|Packager):.*\n)*", lambda match: match[1] + fields,
                  (TOP / SPEC).read_text(), count=1, flags=re.M).encode()


def pack():
    """Returns the name of the tarball."""
    top = f"kevent-{tree.version()}"
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for name in tree.files():
            if name != SPEC:
                tar.add(TOP / name, f"{top}/{name}", recursive=False, filter=plain)
                continue
            member, data = plain(tar.gettarinfo(TOP / name, f"{top}/{name}")), spec()
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    make_folders(DIST)
    return write(DIST / f"{top}.tar.xz", lzma.compress(out.getvalue(), preset=6))


def write_apkbuild(tarball):
    """abuild takes who publishes it, and the checksum of the tarball, from there."""
    publisher = tree.publisher()
    text = (TOP / "packaging/alpine/APKBUILD").read_text()
    text = text.replace('url=""', f'url="{publisher["HOMEPAGE"]}"')
    digest = hashlib.sha512(tarball.read_bytes()).hexdigest()
    write(DIST / "APKBUILD", f"""# Maintainer: {publisher["CONTACT"] or publisher["UNSET"]}
{text}
sha512sums="
{digest}  {tarball.name}
"
""".encode())


def again(path):
    """Its files in order, as those of our own tarball."""
    out = io.BytesIO()
    with tarfile.open(path) as old, \
         tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for member in sorted(old.getmembers(), key=lambda member: member.name):
            data = old.extractfile(member) if member.isfile() else None
            tar.addfile(plain(member), data)
    write(Path(path), gzip.compress(out.getvalue(), mtime=0))


def main(*words):
    if words[:1] == ("again",) and len(words) == 2 and os.path.exists(words[1]):
        return again(words[1])
    if words:
        cli.usage()
    path = pack()
    write_apkbuild(path)
    print(f"dist: {path}, {path.stat().st_size / 1e6:.1f} MB")
    tree.say_unpublished("dist")
    return 0


if __name__ == "__main__":
    cli.run(main, *sys.argv[1:])
