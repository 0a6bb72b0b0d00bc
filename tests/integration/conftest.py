"""Fixtures of the integration tests; what they are made of is in simnode.py."""

from simnode import node, pytest_runtest_makereport

__all__ = ["node", "pytest_runtest_makereport"]
