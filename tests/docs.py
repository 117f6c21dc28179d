# SPDX-License-Identifier: GPL-2.0
"""What the documents must agree with: one another, the headers, and the code.

Each function yields complaints, one line each; tests/check runs them.
"""

import ast
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

from lib import tree
from lib.paths import TOP

DOCS = TOP / "Documentation"
DOCUMENTS = sorted(DOCS.rglob("*.rst"))
EXAMPLES = TOP / "libkevent/examples"
PAGES = sorted((TOP / "libkevent/man").glob("*.[0-9]"))
HEADERS = sorted((TOP / "libkevent/include").glob("libkevent*.h"))
CODE = TOP / "kernel/kevent"
# Errnos that stay inside the kernel, and those of events: kevent(7) has them
INTERNAL = {"ENOBUFS", "EWOULDBLOCK", "ERESTART", "ERESTARTSYS", "ERESTARTNOINTR",
            "ERESTARTNOHAND"}
OF_EVENTS = {"EIDRM", "ECANCELED"}
# What entries of kevent_ctl() may fail with is in the comments of these, beside the sources
ENTRIES = ("kevent_remove", "kevent_modify", "kevent_mark")
OF_ALL_TYPES = {"EEXIST", "ENOENT", "ENOMEM", "ENOSPC", "ENOSYS"}
# The page of each source of kernel/kevent, and errnos that its code has for another use
SOURCES = {
    "kevent_call.2": ("call/*.c", {"EAGAIN", "EINTR", "ETIME"}),
    "kevent_file.7": ("sources/file*.c", {"EAGAIN"}),
    "kevent_futex.7": ("sources/futex.c", set()),
    "kevent_inode.7": ("sources/inode.c", set()),
    "kevent_posix_timer.7": ("sources/posix_timer.c", set()),
    "kevent_proc.7": ("sources/process.c", set()),
    "kevent_signal.7": ("sources/signal*.c", {"EAGAIN"}),
    "kevent_timer.7": ("sources/timer.c", set()),
    "kevent_user.7": ("sources/user.c", set()),
}
# Sections that a page has to have
SECTIONS = {"2": ("SYNOPSIS", "DESCRIPTION", "RETURN VALUE", "ERRORS", "ATTRIBUTES", "EXAMPLES"),
            "3": ("SYNOPSIS", "DESCRIPTION", "RETURN VALUE", "ERRORS", "ATTRIBUTES", "EXAMPLES"),
            "7": ("DESCRIPTION", "EXAMPLES")}
EXAMPLE = re.compile(r"^\.EX\n(.*?)^\.EE$", re.M | re.S)
# What an example may use without declaring it
PRELUDE = """#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <libkevent.h>
#line 1
"""
ERRNO = re.compile(r"\bE[A-Z2][A-Z0-9]+\b")
# Functions of the library's own that libkevent-ffi 1.0.0 exported
OF_1_0 = {"kevent_process_mark", "kevent_process_word"}
KNOWN = {"EXIT", "EDGE", "EVENT", "EACH", "EPOLL", "EXAMPLES", "ERRORS", "END"}


# --- Sphinx -----------------------------------------------------------------

def run(*command):
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    if done.returncode or done.stdout:
        yield from done.stdout.splitlines() or [f"{command[0]} failed"]


def html(out):
    """Sphinx has no warning."""
    yield from run("sphinx-build", "-q", "-n", "-W", "--keep-going", "-E",
                   "-b", "html", DOCS, out / "html")
    yield from run("sphinx-build", "-q", "-E", "-b", "xml", DOCS, out / "xml")


def is_underline(line, above):
    return (len(line) > 3 and len(set(line)) == 1 and line[0] in "=-~^"
            and above.strip() and not above[0].isspace()
            and len(line) >= len(above) - 2)


def titles_meant(text):
    """What the author underlined."""
    lines = text.splitlines()
    return [above.strip() for above, line in zip(lines, lines[1:])
            if is_underline(line, above) and not set(above) <= set("=-~^ ")]


def tree_of(path, out):
    return ElementTree.parse(out / "xml" / path.relative_to(DOCS).with_suffix(".xml"))


def titles(out):
    """What looks like a title in the source is one."""
    for path in DOCUMENTS:
        tree = tree_of(path, out)
        found = {"".join(title.itertext()) for title in tree.iter("title")}
        for title in titles_meant(path.read_text()):
            if title.replace("``", "") not in found:
                yield f"{path.name}: the title {title!r} is not one"
        if len(found) < 3 and path.stem != "index":
            yield f"{path.name}: only {len(found)} titles"


def pages():
    """mandoc has no warning, and each page has its sections."""
    for path in PAGES:
        yield from run("mandoc", "-Tlint", "-W", "warning", path)
        text = path.read_text()
        for name in SECTIONS[path.suffix[1:]]:
            if not section(text, name):
                yield f"{path.name}: no section {name}"


def program_of(example, declared_by_page):
    """An example with a function is a file, another one the body of a function."""
    text = example.replace(r"\e", "\\").replace(r"\-", "-")
    if not re.search(r"^\{", text, re.M):
        text = f"int example(void)\n{{\n{text}return 0;\n}}\n"
    return PRELUDE.replace("#line 1\n", declared_by_page + "\n#line 1\n") + text


def examples():
    """What the sections EXAMPLES have compiles, with what comments of the page declare."""
    compiler = ("gcc", "-fsyntax-only", "-Wall", "-Werror", "-Wno-unused", "-x", "c", "-",
                "-I", TOP / "libkevent/include", "-I", TOP / "include/uapi")
    for path in PAGES:
        text = path.read_text()
        declared_by_page = "\n".join(re.findall(r'^\.\\" example: (.*)$', text, re.M))
        for number, example in enumerate(EXAMPLE.findall(section(text, "EXAMPLES")), 1):
            done = subprocess.run(compiler, input=program_of(example, declared_by_page),
                                  text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            for line in done.stdout.splitlines():
                yield f"{path.name}: example {number}: {line}"


# --- Programs ---------------------------------------------------------------

# A text, a source, and the beginnings of programs that the source does not have
WRONG_PROGRAMS = (
    ("Text\n\n    int f(void)\n    {\n            g();\n    }\n\nText\n\n    make\n",
     "int f(void)\n{\n\tg();\n}\n", []),
    ("Text\n\n    int f(void)\n    {\n\n            h();\n    }\n",
     "int f(void)\n{\n\n\tg();\n}\n", ["int f(void)"]),
)


def blocks(text):
    """Indented blocks of a text, as a source has them."""
    for block in re.findall(r"^ {4}.*\n(?:(?: {4}.*)?\n)*", text, re.M):
        yield "".join(re.sub(r"^(?: {8})+", lambda m: "\t" * (len(m[0]) // 8), line[4:]) + "\n"
                      for line in block.rstrip("\n").splitlines())


def unknown_programs(text, sources):
    """How the blocks of C begin that are in none of these sources."""
    return [block.splitlines()[0] for block in blocks(text)
            if "{\n" in block and not any(block in source for source in sources)]


def programs():
    """Programs of the README are parts of examples; the guide includes its own from them."""
    for text, source, wrong in WRONG_PROGRAMS:
        if unknown_programs(text, [source]) != wrong:
            yield f"tests/docs.py: {unknown_programs(text, [source])} found in {text!r}"
    sources = [path.read_text() for path in EXAMPLES.glob("*.c")]
    for line in unknown_programs((TOP / "README.md").read_text(), sources):
        yield f"README.md: no example has the program that begins with {line!r}"
    for path in DOCS.glob("guide/*.rst"):
        if re.search(r"^\.\. code-block:: c$", path.read_text(), re.M):
            yield f"{path.name}: a program that is in no file of libkevent/examples"


# --- Python -----------------------------------------------------------------

def public(tree, exported):
    """Names of classes and functions that a package exports, and of the methods of these."""
    for node in tree.body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and node.name in exported:
            yield node.name
            yield from (f"{node.name}.{method.name}" for method in getattr(node, "body", ())
                        if isinstance(node, ast.ClassDef) and isinstance(method, ast.FunctionDef)
                        and not method.name.startswith("_"))


def python_names(out):
    """Each class, function and method of the package is in its reference, with words."""
    folder = TOP / "python/kevent"
    listed = next(node.value for node in ast.parse((folder / "__init__.py").read_text()).body
                  if isinstance(node, ast.Assign) and node.targets[0].id == "__all__")
    exported = ast.literal_eval(listed)
    described = {signature.get("fullname"): len(" ".join(node.find("desc_content").itertext()))
                 for node in tree_of(DOCS / "python.rst", out).iter("desc")
                 for signature in node.findall("desc_signature")}
    for path in sorted(folder.glob("_*.py")):
        for name in public(ast.parse(path.read_text()), exported):
            if not described.get(name):
                yield f"python.rst: no words for {name}"
    for name in exported:
        if name not in described:
            yield f"python.rst: no {name}"


def python_examples():
    """The page shows each example of the package, and its output, and no other program."""
    text = (DOCS / "python.rst").read_text()
    shown = re.findall(r"^\.\. literalinclude:: \.\./python/examples/(\S+)$", text, re.M)
    there = sorted(path.name for path in (TOP / "python/examples").iterdir()
                   if path.suffix in (".py", ".out"))
    if sorted(shown) != there:
        yield f"python.rst: shows {sorted(shown)} of {there}"
    if "code-block" in text:
        yield "python.rst: a program that is no example"


# --- Mutants ----------------------------------------------------------------

def mutants():
    yield from run(sys.executable, TOP / "tests/mutants/run", "--check")


# --- Chains -----------------------------------------------------------------

def calls():
    yield from run(sys.executable, TOP / "scripts/call-list", "--check")


# --- Functions --------------------------------------------------------------

def declared():
    """Functions and macros with arguments that a program may use."""
    names = set()
    for path in HEADERS:
        text = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.S)
        text = re.sub(r"^\{.*?^\}", "", text, flags=re.S | re.M)
        names |= set(re.findall(r"\b(kevent_\w+)\(", text))
        names |= set(re.findall(r"^#define (KEVENT_\w+)\(", text, re.M))
    return {name for name in names if not name.endswith("_")}


def plain(text):
    """A manual page without font changes."""
    return re.sub(r"\\-", "-", re.sub(r"\\f[A-Z]", "", text))


def section(text, name):
    found = re.search(rf"^\.SH {name}\n(.*?)(?=^\.SH |\Z)", text, re.M | re.S)
    return found[1] if found else ""


def macros():
    return {name for path in HEADERS
            for name in re.findall(r"^#define (\w+)\(", path.read_text(), re.M)}


def exported(library):
    return set(re.findall(r"^\t\t(\w+);", (
        TOP / f"libkevent/{library}.map").read_text(), re.M))


def functions():
    """The headers and the synopses have the same functions, each with words."""
    synopses, described = set(), set()
    for path in PAGES:
        text = plain(path.read_text())
        synopses |= set(re.findall(r"\b((?:kevent|KEVENT)_\w+)\(",
                                   section(text, "SYNOPSIS")))
        described |= set(re.findall(r"\b(kevent_\w+|KEVENT_\w+)\b",
                               section(text, "DESCRIPTION")))
    for name in sorted(declared() ^ synopses):
        where = "a synopsis" if name in synopses else "a header"
        yield f"{name} is in {where} only"
    for name in sorted(synopses - described):
        yield f"{name} is in no DESCRIPTION"
    for name in sorted(exported("libkevent") - declared()):
        yield f"libkevent.map exports {name}, which no header declares"
    for name in sorted(exported("libkevent-ffi") - OF_1_0 ^ declared() - macros()):
        yield f"{name} is in libkevent-ffi.map only, or in a header only"


def references():
    """What a manual page of ours refers to is another one, or a function in a synopsis."""
    known = {f"{path.stem} ({path.suffix[1:]})" for path in PAGES}
    known |= {f"{name} (3)" for path in PAGES if path.suffix == ".3"
              for name in re.findall(r"\b(kevent_\w+)\(",
                                     plain(section(path.read_text(), "SYNOPSIS")))}
    for path in PAGES:
        for name in re.findall(r"^\.BR ((?:lib)?kevent\w* \(\d\))", path.read_text(), re.M):
            if name not in known:
                yield f"{path.name}: there is no {name}"


def constants():
    """Each constant of the binary interface has a word in a document."""
    header = (TOP / "include/uapi/linux/ukevent.h").read_text()
    texts = [plain(path.read_text()) for path in PAGES]
    words = set(re.findall(r"\w+", " ".join(texts)))
    for name in re.findall(r"^#define ([A-Z]\w+)[\s(]", header, re.M):
        if name not in words:
            yield f"{name} is in no manual page"


def names():
    """Functions and states of the kernel that a document names exist."""
    texts = [path.read_text(errors="replace") for folder in
             ("kernel", "include", "libkevent", "patches", "bench", "tests/suites")
             for path in (TOP / folder).rglob("*.[chp]*") if path.is_file()]
    known = set(re.findall(r"\w+", " ".join(texts)))
    for path in DOCUMENTS:
        for name in sorted(set(re.findall(
                r"\b((?:kevent|kring|ev|requests?|file_wait|fb|lane)_\w+(?=\(\))|KE_[A-Z]+)",
                path.read_text()))):
            if name not in known:
                yield f"{path.name}: there is no {name}"


# --- Errnos -----------------------------------------------------------------

def errnos(text):
    return {name for name in ERRNO.findall(text)} - KNOWN


def code_of(path):
    return re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.S)


def sources():
    return sorted(CODE.rglob("*.c"))


def comment_of(name):
    """What the kernel-doc comment of a function says it returns."""
    for path in sources():
        found = re.search(rf"^/\*\*\n \* {name} - .*?\*/", path.read_text(),
                          re.M | re.S)
        if found:
            return found[0].partition("Return:")[2]
    return None


def page_errnos(name):
    """{what ERRORS begins a part with, the first two words: tags of that part}"""
    text = plain((TOP / f"libkevent/man/{name}").read_text())
    parts = re.split(r"^(Of(?: \w+ \w+)?)\b.*$", section(text, "ERRORS"), flags=re.M)
    tags = {}
    for begin, part in zip(["Of the call", *parts[1::2]], parts[::2]):
        found = re.findall(r"^\.TP\n(.*)$", part, re.M)
        tags[begin] = tags.get(begin, set()) | set().union(*map(errnos, found))
    return tags


def entry_tags(name):
    return page_errnos(name).get("Of an entry", set())


def call_errnos():
    """The errnos of a system call are in its page, and not in the kernel as well."""
    for path in sources():
        for comment, name in re.findall(r"^(/\*(?:(?!\*/).)*\*/\n)?SYSCALL_DEFINE\d\((\w+)",
                                        path.read_text(), re.M | re.S):
            if errnos(comment):
                yield f"{path.name}: errnos of {name}() are in {name}.2"
            if not page_errnos(f"{name}.2")["Of the call"]:
                yield f"{name}.2 has no errnos"


def library_errnos():
    """A page has the errnos of the comment in the library's header."""
    header = (TOP / "libkevent/include/libkevent.h").read_text()
    for path in PAGES:
        comment = re.search(rf"^/\*\*\n \* {path.stem}\(\) - .*?\*/", header, re.M | re.S)
        if path.suffix != ".2" or not comment:
            continue
        tags = page_errnos(path.name)
        found = tags["Of the call"] | tags.get("Of the library", set())
        for name in sorted(errnos(comment[0].partition("Return:")[2]) - found):
            yield f"{path.name}: {name} is in libkevent.h only"


def entry_errnos():
    """The page of a source has the errnos that its code has, kevent_ctl(2) those of all."""
    of_all = entry_tags("kevent_ctl.2")
    left = set(CODE.glob("sources/*.c"))
    for page, (pattern, other) in SOURCES.items():
        paths = set(CODE.glob(pattern))
        left -= paths
        wanted = {name[1:] for path in paths
                  for name in re.findall(r"-E[A-Z0-9]+\b", code_of(path))}
        found = set().union(*page_errnos(page).values())
        # An errno with a reason in the code of the source needs words there
        for name in sorted(wanted - INTERNAL - OF_EVENTS - other - found -
                           OF_ALL_TYPES):
            yield f"{page}: entries may have {name}"
    for path in sorted(left):
        yield f"{path.name}: no page is about this source"
    of_any = of_all.union(*map(entry_tags, SOURCES))
    for name in ENTRIES:
        said = comment_of(name)
        if said is None:
            yield f"no kernel-doc comment of {name}()"
        for errno in sorted(errnos(said or "") - of_any):
            yield f"{name}(): no page says that entries may have {errno}"
    for name in sorted(OF_ALL_TYPES - of_all):
        yield f"kevent_ctl.2: entries may have {name}"


def errno_tables():
    """Errnos are in manual pages: no document has a table of them."""
    for path in sorted(DOCS.glob("*.rst")):
        for name in re.findall(r"^(E[A-Z0-9]{3,}) {2,}\S", path.read_text(), re.M):
            if name not in KNOWN and not name.startswith("EPOLL"):
                yield f"{path.name}: a table has {name}, which is for a manual page"


def known_errnos():
    """No errno of the code is in no page, and the other way round."""
    text = "".join(code_of(path) for path in sources())
    wanted = {name[1:] for name in re.findall(r"-E[A-Z0-9]+\b", text)}
    words = set()
    for path in PAGES:
        words |= errnos(plain(path.read_text()))
    # Outcomes of a wait that calls do not return, and an ioctl's
    wanted -= INTERNAL | {"ETIME", "ENOIOCTLCMD"}
    for name in sorted(wanted - words):
        yield f"{name} is in no manual page"


# --- Promises ---------------------------------------------------------------

def guest_tests():
    """Names of suites and of suite.test, as the sources have them."""
    for path in (TOP / "tests/suites").rglob("test_*.c"):
        text = path.read_text()
        for suite in re.findall(r"struct test_suite \w+ = \{\s*\.name = \"(\w+)\"", text):
            yield suite
            for test in re.findall(r"\bTEST\w*\((\w+)", text):
                yield f"{suite}.{test}"


def promises():
    """Tests that promises.rst names exist, and each promise names some."""
    known = set(guest_tests())
    text = (DOCS / "promises.rst").read_text()
    fields = re.findall(r"^  :Tests: (.*(?:\n\t.*)*)", text, re.M)
    if len(fields) != len(re.findall("^  :Load:", text, re.M)):
        yield "promises.rst: a promise without a load or without tests"
    for name in re.findall(r"``([^`]+)``", " ".join(fields)):
        if name not in known and not name.startswith(("make ", "tests/")) \
                and name not in ("debug", "worst"):
            yield f"promises.rst: no test {name}"


# --- Prose -------------------------------------------------------------------

BEGINNING = re.compile(r"(?:^|[.:?!]['\")]*\s+)['\"(]*"
                       r"(Who(?:se|ever)?|What(?:ever)?|That of|Those)\b")
PRIVATE = re.compile(r"(?<![\w-])(told|tells?|ow(?:e|es|ed)|look(?:s|ed|ing)?(?! up\b)|"
                     r"whoever|bur(?:y|ies|ied)|let go|lets go)(?![\w-])", re.I)
# Lines that a document has at most
LONGEST = {"benchmarks.rst": 599, "kevent.rst": 499, "kevent-kernel.rst": 499,
           "kevent-internals.rst": 599}
# Its tables have names of tests
TABLES_OF_NAMES = {"testing.rst"}


def bad_words(text):
    """Beginnings and words that no paragraph may have."""
    return BEGINNING.findall(text) + PRIVATE.findall(text)


def words_of(node):
    """The text of a paragraph, without what is literal."""
    if node.tag == "literal":
        return "X"
    return (node.text or "") + "".join(words_of(part) + (part.tail or "")
                                       for part in node)


def prose_of(path, tree):
    if path.name in TABLES_OF_NAMES:
        for parent in [*tree.iter()]:
            for table in parent.findall("table"):
                parent.remove(table)
    for tag in ("title", "paragraph", "caption"):
        for node in tree.iter(tag):
            yield words_of(node)


def prose_of_readme():
    text = re.sub(r"`[^`]*`", "X", (TOP / "README.md").read_text())
    text = re.sub(r"^(?:    |#).*$", "", text, flags=re.M)
    yield from re.split(r"\n\n|\||\*\*", text)


def prose(out):
    """Documents are short, and say things in plain words."""
    yield from run("sphinx-build", "-q", "-E", "-b", "xml", DOCS, out / "xml")
    texts = [("README.md", part) for part in prose_of_readme()]
    for path in DOCUMENTS:
        length = path.read_text().count("\n")
        if length > LONGEST.get(path.name, length):
            yield f"{path.name}: {length} lines, over {LONGEST[path.name]}"
        tree = tree_of(path, out)
        texts += [(path.name, text) for text in prose_of(path, tree)]
    for name, text in texts:
        for word in bad_words(text):
            yield f"{name}: {word!r} in: {' '.join(text.split())[:70]}"


# --- Licences and versions ---------------------------------------------------

def licences():
    """COPYING has a row for each file, with the licence that most files of the row name."""
    rows = {}
    for line in (TOP / "COPYING").read_text().splitlines():
        names, _, licence = line.partition("\t")
        rows |= {name: (licence.strip(), []) for name in names.split(", ") if licence}
    for path in tree.files():
        row = max((name for name in rows if f"{path}/".startswith(f"{name}/")),
                  key=len, default=None)
        if row:
            file = TOP / path
            text = file.read_text(errors="replace")[:300] if file.is_file() else ""
            said = re.search(r"SPDX-License-Identifier: (.*?)(?: \*/)?$", text, re.M)
            rows[row][1].extend([said[1]] if said else [])
        elif not path.startswith((".", "patches/", "LICENSES/", "COPYING")):
            yield f"COPYING has no row for {path}"
    for row, (licence, said) in rows.items():
        if said and max(said, key=said.count).translate({40: None, 41: None}) != licence:
            yield f"COPYING: {licence} for {row}, where files say {max(said, key=said.count)}"


VERSIONS = (("python/kevent/_version.py", r'^__version__ = "(.*)"'),
            ("rust/Cargo.toml", r'^version = "(.*)"'),
            ("kernel/module/main.c", r'^MODULE_VERSION\("(.*)"\);'),
            ("packaging/rpm/kevent.spec", r"^Version:\t(.*)$"),
            ("packaging/alpine/APKBUILD", r"^pkgver=(.*)$"),
            ("CHANGES", r"^([0-9.]+) \(\d{4}-\d\d-\d\d\)$"))


def versions():
    """There is one version, that of the headers."""
    version = tree.version()
    for path, pattern in VERSIONS:
        found = re.search(pattern, (TOP / path).read_text(), re.M)
        if not found or found[1] != version:
            yield f"{path}: version {found and found[1]}, not {version}"
    nodes = re.findall(r"^LIBKEVENT_(\S+) {", (TOP / "libkevent/libkevent.map").read_text(), re.M)
    for path in sorted((TOP / "libkevent/man").iterdir()):
        for since in re.findall(r"^libkevent (\d+\.\d+)", path.read_text(), re.M):
            if since not in nodes:
                yield f"{path.relative_to(TOP)}: libkevent {since} is none of {nodes}"


def everything(out):
    missing = [name for name in ("sphinx-build", "mandoc")
               if not shutil.which(name)]
    if missing:
        yield f"no {' and no '.join(missing)}; run scripts/setup"
        return
    errors = list(html(out))
    yield from errors
    if not any(out.glob("xml/*.xml")):
        return
    yield from titles(out)
    yield from pages()
    yield from examples()
    yield from programs()
    yield from python_names(out)
    yield from python_examples()
    yield from mutants()
    yield from calls()
    yield from functions()
    yield from references()
    yield from constants()
    yield from names()
    yield from call_errnos()
    yield from library_errnos()
    yield from entry_errnos()
    yield from errno_tables()
    yield from known_errnos()
    yield from promises()
    yield from licences()
    yield from versions()
