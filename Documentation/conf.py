# SPDX-License-Identifier: GPL-2.0
"""How make docs turns these documents into HTML."""

import re
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))
# The comments of the package are read where neither the library nor cffi is installed.
extensions = ["sphinx.ext.autodoc"]
autodoc_mock_imports = ["_cffi_backend"]
autodoc_member_order = "bysource"
project = "kevent"
root_doc = "index"
exclude_patterns = ["plots"]
nitpicky = True
# Classes of Python, which has documents of its own
nitpick_ignore = [("py:class", name) for name in (
    "FileExistsError", "FileNotFoundError", "PermissionError", "ProcessLookupError",
    "BlockingIOError")]
smartquotes = False
html_theme = "alabaster"
html_theme_options = {
    "description": "One event queue for Linux",
    "page_width": "1200px",
    "sidebar_width": "230px",
    "fixed_sidebar": True,
    "show_powered_by": False,
}
html_sidebars = {"**": ["about.html", "navigation.html", "searchbox.html"]}
html_show_copyright = False
html_copy_source = False
html_static_path = ["html"]
html_css_files = ["kevent.css"]

ITEM = re.compile(r"( *)(\w+)\t+(.*)")
# A program makes no such object itself.
MADE_BY_OTHERS = re.compile(r"kevent\.(\w*Event|\w*Watch|Stream)")


def items(app, what, name, obj, options, lines):
    """Lines "name<tab>text" of a comment as definitions; lines that begin with tabs go on."""
    if what == "attribute":		# of an enumeration: the comment is that of the class
        lines.clear()
        return
    text, begun = [], False
    for line in (obj.__doc__ or "").splitlines():
        found = ITEM.fullmatch(line)
        if found:
            text += [""] * (not begun) + [f"{found[1]}``{found[2]}``", f"{found[1]}   {found[3]}"]
            indent, begun = f"{found[1]}   ", True
        elif begun and line.startswith("\t"):
            text.append(indent + line.strip())
        else:
            begun = begun and not line.strip()
            text.append(line)
    margin = min((len(line) - len(line.lstrip()) for line in text[1:] if line.strip()), default=0)
    text = [line[margin * (number > 0):].replace("*", "\\*") for number, line in enumerate(text)]
    lines[:] = [*text, ""]


def signature(app, what, name, obj, options, words, result):
    return ("", None) if MADE_BY_OTHERS.fullmatch(name) else None


def setup(app):
    app.connect("autodoc-process-docstring", items)
    app.connect("autodoc-process-signature", signature)
