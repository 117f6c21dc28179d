# SPDX-License-Identifier: LGPL-2.1 OR MIT
"""The types that programs are checked with are those of the package."""

import ast
import enum
import inspect
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import kevent

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
with open(f"{PACKAGE}/kevent/__init__.pyi", encoding="ascii") as stub:
    TREE = ast.parse(stub.read())
CLASSES = {node.name: node for node in TREE.body if isinstance(node, ast.ClassDef)}
FUNCTIONS = {node.name for node in TREE.body if isinstance(node, ast.FunctionDef)}
GOOD = """
import asyncio
import kevent

async def main() -> int:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, kevent.EventLoop)
    watch = loop.queue.timer(0.5, data="tick", dispatch=True)
    loop.add_watch(watch, print)
    watch.modify(1)
    return loop.queue.fileno()

asyncio.set_event_loop_policy(kevent.EventLoopPolicy())
with kevent.Queue(64, fallback="only") as queue:
    user = queue.user(data=1)
    user.mark(value=3)
    for event in queue.get(timeout=0.0):
        if isinstance(event, kevent.SocketEvent):
            event.amount.bit_length()
"""
# Each line is an error
BAD = ("kevent.Queue().get(timeout='1')", "kevent.Queue(fast=True)", "kevent.Queue().timer()",
       "kevent.Queue().user().mark('1')", "kevent.Nothing", "kevent.EventLoop(streams='a', b=1)")


def parameters(node):
    """Of a function of the stub: their names, and which have a default."""
    args = node.args
    names = [arg.arg for arg in args.posonlyargs + args.args]
    given = names[len(names) - len(args.defaults):]
    given += [arg.arg for arg, value in zip(args.kwonlyargs, args.kw_defaults) if value]
    names += [arg.arg for arg in args.kwonlyargs]
    names += [arg.arg for arg in (args.vararg, args.kwarg) if arg]
    return {name: name in given for name in names}


class Types(unittest.TestCase):
    def test_all_names_have_types(self):
        self.assertEqual(sorted(set(CLASSES) - {"_HasFileno"} | FUNCTIONS),
                         sorted(kevent.__all__ + ["EventLoopPolicy"] * (sys.version_info >= (3, 14))))

    def test_classes_have_the_same_methods(self):
        """With the same parameters; and enumerations the same values."""
        for name, node in CLASSES.items():
            there = getattr(kevent, name, None)
            if there is None:
                continue
            own = {key: value for key, value in vars(there).items() if not key.startswith("_")}
            if issubclass(there, enum.Enum):
                said = {target.targets[0].id: ast.literal_eval(target.value)
                        for target in node.body}
                self.assertEqual(said, {key: int(value) for key, value
                                        in there.__members__.items()}, name)
                continue
            methods = {each.name: each for each in node.body
                       if isinstance(each, ast.FunctionDef)}
            typed = {*methods, *(each.target.id for each in node.body
                                 if isinstance(each, ast.AnnAssign))}
            self.assertLessEqual({key for key, value in own.items() if callable(value) or
                                  isinstance(value, property)}, typed, name)
            for key, method in methods.items():
                real = inspect.getattr_static(there, key)
                if isinstance(real, property):
                    continue
                self.assertEqual(
                    {word: each.default is not each.empty for word, each
                     in inspect.signature(real).parameters.items()},
                    parameters(method), f"{name}.{key}")

    @unittest.skipUnless(shutil.which("mypy"), "no mypy")
    def test_mypy_knows_right_from_wrong(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, lines in ("good", GOOD), ("bad", "import kevent\n" + "\n".join(BAD)):
                with open(f"{folder}/{name}.py", "w", encoding="ascii") as file:
                    file.write(lines)
            done = subprocess.run(["mypy", "--strict", "--cache-dir", f"{folder}/cache",
                                   "good.py", "bad.py"], cwd=folder, text=True, check=False,
                                  stdout=subprocess.PIPE,
                                  env={**os.environ, "MYPYPATH": PACKAGE})
        wrong = {line.split(":")[1] for line in done.stdout.splitlines()
                 if line.startswith("bad.py:") and ": error:" in line}
        self.assertEqual(wrong, {str(number) for number in range(2, len(BAD) + 2)},
                         done.stdout)
        self.assertNotRegex(done.stdout, r"good\.py|__init__\.pyi:.* error:")


if __name__ == "__main__":
    unittest.main()
