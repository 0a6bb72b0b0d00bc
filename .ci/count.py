#!/usr/bin/env python3
"""Adds up the tests of all kinds from the logs of the stages and prints the closing line.

Usage: count.py LOG_FOLDER [FAILED_STAGE...]; exit 1 if anything failed or nothing ran.
"""

import pathlib
import re
import sys

# ctest: "98% tests passed, 2 tests failed out of 100"; pytest: "3 failed, 12 passed in 4.0s";
# go test -v: "--- PASS: TestName"; gtest-like suites of our own end as pytest does.
CTEST = re.compile(r"tests passed, (\d+) tests failed out of (\d+)")
PYTEST = re.compile(r"^(?:=+ )?\d+ (?:passed|failed|error).*\bin [\d.]+s.*$", re.MULTILINE)
GO = re.compile(r"^\s*--- (PASS|FAIL|SKIP): ", re.MULTILINE)


def count(text: str) -> tuple[int, int]:
    passed = failed = 0
    for bad, total in CTEST.findall(text):
        failed += int(bad)
        passed += int(total) - int(bad)
    for line in PYTEST.findall(text):
        for number, word in re.findall(r"(\d+) (passed|failed|error)", line):
            if word == "passed":
                passed += int(number)
            else:
                failed += int(number)
    for verdict in GO.findall(text):
        passed += verdict == "PASS"
        failed += verdict == "FAIL"
    return passed, failed


def main() -> int:
    passed = failed = 0
    for log in sorted(pathlib.Path(sys.argv[1]).glob("*.log")):
        good, bad = count(log.read_text(errors="replace"))
        print(f"{log.stem}: {good} passed, {bad} failed")
        passed += good
        failed += bad
    stages = sys.argv[2:]
    if stages:
        print("stages that failed: " + ", ".join(stages))
    failed += 0 if failed else len(stages)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
