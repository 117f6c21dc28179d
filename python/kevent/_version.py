# SPDX-License-Identifier: LGPL-2.1 OR MIT
"""The version of the package, which its build reads without importing the rest."""

__version__ = "2.0.0"
