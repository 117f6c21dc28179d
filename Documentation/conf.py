# SPDX-License-Identifier: GPL-2.0
"""How make docs turns these documents into HTML."""

project = "kevent"
root_doc = "index"
exclude_patterns = ["plots"]
nitpicky = True
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
