# SPDX-License-Identifier: GPL-2.0
"""What the programs of this tree share that run on the host.

paths	folders
tree	files, and which state of them this is
cli	errors, usage, Ctrl-C
apt	packages and sources of any suite of Debian's
build	logs, compilers
vm	commands in a VM, and on what machine they ran
report	results of tests, and the line that counts them
tables	tables of reStructuredText, and figures that must be in one

A program finds this package in scripts/: it puts that folder into sys.path.
"""
