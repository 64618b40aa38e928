#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Usage: observe.py [--list] UNPACKED DEVICE TEST...
Runs tests of rdma-core's Python suite, unpacked in UNPACKED/tests, and prints one JSON line when a test starts and one
with its outcome: pass, skip, fail (an assertion) or error (an exception), and the text that goes with it. TEST is a
module (test_qp) or one test (test_qp.QPTest.test_query_rc_qp). --list only prints the tests' names."""

import importlib
import json
import os
import sys
import types
import unittest


class Result(unittest.TestResult):
    def say(self, test, outcome, text=""):
        name = test.id().split(".", 1)[1]
        print(json.dumps({"test": name, "outcome": outcome, "text": text}), flush=True)

    def startTest(self, test):
        super().startTest(test)
        self.settled = False
        self.say(test, "start")

    def settle(self, test, outcome, text=""):
        # A failure in tearDown follows the test's own outcome: the worse one counts, so each is told.
        self.settled = True
        self.say(test, outcome, text)

    def addSuccess(self, test):
        self.settle(test, "pass")

    def addSkip(self, test, reason):
        self.settle(test, "skip", reason)

    def addFailure(self, test, err):
        self.settle(test, "fail", self._exc_info_to_string(err, test))

    def addError(self, test, err):
        self.settle(test, "error", self._exc_info_to_string(err, test))


def load(unpacked, names):
    """Imports the wanted modules only: the suite's own __init__ would import all."""
    folder = os.path.join(unpacked, "tests")
    sys.path.insert(0, folder)
    package = types.ModuleType("tests")
    package.__path__ = [folder]
    sys.modules["tests"] = package
    loader = unittest.TestLoader()
    suite = unittest.TestSuite()
    for name in names:
        module = importlib.import_module("tests." + name.split(".")[0])
        if "." in name:
            suite.addTests(loader.loadTestsFromName(name.split(".", 1)[1], module))
        else:
            suite.addTests(loader.loadTestsFromModule(module))
    return suite


def flatten(suite):
    for item in suite:
        if isinstance(item, unittest.TestSuite):
            yield from flatten(item)
        else:
            yield item


def main():
    listing = "--list" in sys.argv
    if listing:
        sys.argv.remove("--list")
    unpacked, device, *names = sys.argv[1:]
    sys.path.insert(0, os.path.join(unpacked, "tests"))
    sys.argv = [sys.argv[0], "--dev", device]
    from args_parser import parser
    parser.parse_args()
    suite = load(unpacked, names)
    if listing:
        print("\n".join(test.id().split(".", 1)[1] for test in flatten(suite)))
        return
    suite.run(Result())


main()
