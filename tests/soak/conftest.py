"""Reports of the integration tests' fixture, for the soak tests."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "integration"))

from simnode import pytest_runtest_makereport  # noqa: E402

__all__ = ["pytest_runtest_makereport"]
