"""The integration tests' simulated node, with the programs that are shipped."""

import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).parents[2]
os.environ.setdefault("NDP_BIN_DIR", str(ROOT / "build/release/bin"))
sys.path.insert(0, str(ROOT / "tests/integration"))

from simnode import node, pytest_runtest_makereport  # noqa: E402

__all__ = ["node", "pytest_runtest_makereport"]
