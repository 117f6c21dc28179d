# SPDX-License-Identifier: GPL-2.0
"""Read descriptions of system calls in syzkaller's language, and write tables in C.

Knows as much of the language as kevent.txt and host.txt use: include, resource, const,
flags, len, intN, ptr, ptr64, vma, array, structures with align[N], unions, templates.
"""

import re

INTS = {"int8": 1, "int16": 2, "int32": 4, "int64": 8, "intptr": 8}
HEADERS = {"linux/time.h": "time.h", "linux/fcntl.h": "fcntl.h",
           "asm/unistd.h": "raw_syscall.h"}
# Structures of the header that have another name here
STRUCTS = {"kevent_entry": "ukevent", "kevent_entry_any": "ukevent"}
SIZED = ("ukevent", "kevent_change", "kevent_wait_arg")
LAYOUT = (*SIZED, "kevent_ring")	# whose members have places to compare
NAME = re.compile(r"\b[A-Z][A-Z0-9_]{3,}\b|\bO_\w+")


class Failure(Exception):
    """One line for the user."""


def split(text):
    """The parts of a list between commas that are in no bracket."""
    parts, depth, part = [], 0, ""
    for char in text:
        depth += (char == "[") - (char == "]")
        if char == "," and not depth:
            parts.append(part.strip())
            part = ""
        else:
            part += char
    return [*parts, part.strip()] if part.strip() else parts


def head_and_options(text):
    match = re.fullmatch(r"([\w$]+)(?:\[(.*)\])?", text.strip())
    if not match:
        raise Failure(f"not a type: {text}")
    return match[1], split(match[2] or "")


def c_range(text):
    low, _, high = text.partition(":")
    return low, high or low


class Description:
    """What some files say, and the tables of it."""

    def __init__(self, *paths):
        self.headers, self.resources, self.flags = [], {}, {}
        self.bodies, self.parameters, self.unions = {}, {}, set()
        self.calls, self.lines = [], []
        self.types, self.sizes = {}, {}
        for path in paths:
            self.read(path)

    # --- reading ----------------------------------------------------------

    def read(self, path):
        lines = iter(enumerate(path.read_text().splitlines(), 1))
        for number, line in lines:
            line = line.partition("#")[0].rstrip()
            try:
                self.line(line, lines, path.name)
            except Failure as failure:
                raise Failure(f"{path.name}:{number}: {failure}") from None

    def line(self, line, lines, file):
        if not line:
            return
        if match := re.fullmatch(r"include <(?:uapi/)?(.*)>", line):
            self.headers.append(HEADERS.get(match[1], match[1]))
        elif match := re.fullmatch(r"resource (\w+)\[(\w+)\](?:: (.*))?", line):
            self.resources[match[1]] = match[2], split(match[3] or "")
        elif match := re.fullmatch(r"(?:type )?(\w+)(?:\[([\w, ]+)\])? ([{[])",
                                   line) or \
                re.fullmatch(r"(\w+)() (\[)", line):
            self.body(match, lines)
        elif match := re.fullmatch(r"(\w+) = (.*)", line):
            self.flags[match[1]] = split(match[2])
        elif match := re.fullmatch(r"([\w$]+)\((.*)\)(?: (\w+))?", line):
            members = [member.split(None, 1) for member in split(match[2])]
            self.calls.append((match[1], members, match[3], file))
        else:
            raise Failure(f"not understood: {line}")

    def body(self, match, lines):
        members = []
        for _, line in lines:
            line = line.partition("#")[0].strip()
            if line.startswith(("}", "]")):
                break
            if line:
                members.append(line.split(None, 1))
        self.bodies[match[1]] = members
        self.parameters[match[1]] = split(match[2] or "")
        if match[3] == "[":
            self.unions.add(match[1])

    # --- types ------------------------------------------------------------

    def kinds(self, resource):
        """The bits of a resource and of those that it is one of."""
        names, bits = list(self.resources), 0
        while resource in self.resources:
            bits |= 1 << names.index(resource)
            resource = self.resources[resource][0]
        return bits

    def int_size(self, options, place):
        return INTS[options[place]] if len(options) > place else 8

    def define(self, text, size, align, **members):
        name = f"type_{len(self.types)}"
        self.types[text] = name
        self.sizes[name] = size, align
        words = "".join(f"\n\t.{key} = {value}," for key, value
                        in {"size": size, **members}.items())
        self.lines.append(f"static const struct type {name} = {{{words}\n}};")
        return name

    def array_of(self, what, items):
        """The name of an array in C, without which there are no items."""
        if not items:
            return "NULL"
        name = f"items_{len(self.lines)}"
        self.lines.append(f"static const {what} {name}[] = {{\n\t" +
                          ",\n\t".join(items) + "\n};")
        return name

    def type(self, text, siblings=()):
        """The name of the table of a type; len refers to one of its siblings."""
        head, options = head_and_options(text)
        if head == "len":
            return self.length(options, siblings)
        if text in self.types:
            return self.types[text]
        method = getattr(self, f"type_{head}", None)
        if head in INTS:
            return self.integer(text, INTS[head], options)
        if head in self.resources:
            return self.resource(text, head)
        if head in self.bodies:
            return self.compound(text, head, options)
        if method:
            return method(text, options)
        raise Failure(f"no type {head}")

    def length(self, options, siblings):
        size = self.int_size(options, 1)
        at = -1 if options[0] == "parent" else siblings.index(options[0])
        return self.define(f"len {len(self.types)}", size, size, kind="LEN",
                           of=at)

    def integer(self, text, size, options):
        low, high = c_range(options[0]) if options else ("0", "-1")
        return self.define(text, size, size, kind="INT", lo=f"(uint64_t)({low})",
                           hi=f"(uint64_t)({high})")

    def resource(self, text, head):
        base, values = head, []
        while base in self.resources:
            base, more = self.resources[base]
            values += more
        size = INTS[base]
        return self.define(
            text, size, size, kind="RESOURCE", bits=self.kinds(head),
            own=f"1U << {list(self.resources).index(head)}", nr=len(values),
            values=self.array_of("uint64_t", [f"(uint64_t)({value})"
                                              for value in values]))

    def type_const(self, text, options):
        size = self.int_size(options, 1)
        return self.define(text, size, size, kind="CONST",
                           lo=f"(uint64_t)({options[0]})")

    def type_flags(self, text, options):
        values, size = self.flags[options[0]], self.int_size(options, 1)
        return self.define(
            text, size, size, kind="FLAGS", nr=len(values),
            values=self.array_of("uint64_t", [f"(uint64_t)({value})"
                                              for value in values]))

    def type_ptr(self, text, options):
        return self.define(
            text, 8, 8, kind="PTR", elem=f"&{self.type(options[1])}",
            out=int(options[0] == "out"), optional=int("opt" in options))

    type_ptr64 = type_ptr

    def type_vma(self, text, _):
        return self.define(text, 8, 8, kind="VMA")

    def type_array(self, text, options):
        elem = self.type(options[0])
        low, high = c_range(options[1] if len(options) > 1 else "0:4")
        size, align = self.sizes[elem]
        return self.define(text, size * int(high), align, kind="ARRAY",
                           elem=f"&{elem}", lo=low, hi=high)

    def compound(self, text, head, options):
        """A structure or union, with the types of a template put in."""
        members = []
        for name, words in self.bodies[head]:
            for parameter, value in zip(self.parameters[head], options):
                words = re.sub(rf"\b{parameter}\b", lambda _: value, words)
            members.append((name, words))
        names = [name for name, _ in members]
        kinds = [self.type(words, names) for _, words in members]
        at, most, rows, union = 0, 1, [], head in self.unions
        for name, kind in zip(names, kinds):
            size, align = self.sizes[kind]
            most = max(most, align)
            offset = 0 if union else -(-at // align) * align
            at = max(at, offset + size)
            rows.append(f'{{ "{name}", &{kind}, {offset} }}')
            self.check(head, name, offset)
        size = -(-at // most) * most
        known = STRUCTS.get(head, head)
        if known in SIZED and not union:
            self.lines.append(f"_Static_assert(sizeof(struct {known}) == "
                              f"{size}, \"{head}\");")
        return self.define(
            text, size, most, kind="UNION" if union else "STRUCT",
            nr=len(rows), members=self.array_of("struct member", rows))

    def check(self, head, name, offset):
        """The compiler compares the place of a member with that in the header."""
        known = STRUCTS.get(head, head)
        if known in LAYOUT and head not in self.unions:
            self.lines.append(
                f"_Static_assert(offsetof(struct {known}, {name}) == {offset},"
                f" \"{head}.{name}\");")

    # --- output -----------------------------------------------------------

    def tables(self, ours):
        """The text of a source in C; the calls of the file named ours are marked."""
        rows = []
        for name, members, result, file in self.calls:
            names = [member for member, _ in members]
            items = [f'{{ "{member}", &{self.type(words, names)}, 0 }}'
                     for member, words in members]
            own = f"1U << {list(self.resources).index(result)}" if result else 0
            rows.append(
                f'{{ "{name}", __NR_{name.partition("$")[0]}, {len(items)}, '
                f'{self.array_of("struct member", items)}, '
                f'{self.kinds(result)}, {own}, {int(file == ours)} }}')
        lines = ["#define _GNU_SOURCE", "#include <stddef.h>",
                 "#include <sys/syscall.h>",
                 *(f"#include <{header}>" for header
                   in dict.fromkeys(self.headers)), '#include "execute.h"',
                 *self.lines, "const struct call calls[] = {\n\t" +
                 ",\n\t".join(rows) + "\n};",
                 f"const unsigned int nr_calls = {len(rows)};"]
        return "\n".join(lines) + "\n"


def names_in(text):
    """The constants that a description refers to."""
    text = re.sub(r"#.*|^include.*|\$\w+", "", text, flags=re.M)
    own = re.findall(r"^type \w+\[([\w, ]+)\] {", text, re.M)
    own = {word for words in own for word in split(words)}
    return sorted({name for name in NAME.findall(text) if name not in own})
