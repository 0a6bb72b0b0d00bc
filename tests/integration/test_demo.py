"""`ndp-sim run`, which `make demo` shows: a whole node from its start to its end, told to a person."""

import os
import subprocess

import pytest
from simnode import BIN


def run(tmp_path, profile):
    """The demo with its own temporary folder below tmp_path."""
    return subprocess.run([BIN / "ndp-sim", "run", "--profile", profile], env=os.environ | {"TMPDIR": str(tmp_path)},
                          capture_output=True, text=True, timeout=120, check=False)  # fmt: skip


@pytest.mark.parametrize("profile, count", [("dgx-h100", 8), ("driver-container", 4), ("gke", 2)])
def test_a_node_is_shown_wherever_its_driver_is(tmp_path, profile, count):
    shown = run(tmp_path, profile)
    assert shown.returncode == 0, shown.stdout + shown.stderr
    assert f"nvidia.com/gpu: {count} ({count} allocatable)" in shown.stdout
    assert f"nvidia.com/gpu: {count} ({count - 1} allocatable)" in shown.stdout
    assert "NVIDIA_VISIBLE_DEVICES=GPU-" in shown.stdout
    assert "Unhealthy  XID 79" in shown.stdout and "next: " in shown.stdout
    assert "All of it happened as it should" in shown.stdout
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("profile, why", [("none", "(no GPU, no driver) is none"), ("thor", "(Jetson Thor"),
                                          ("nope", 'no profile "nope"')])  # fmt: skip
def test_a_machine_that_it_cannot_show_is_refused_and_leaves_nothing(tmp_path, profile, why):
    shown = run(tmp_path, profile)
    assert shown.returncode == 2 and why in shown.stderr and shown.stdout == ""
    assert not list(tmp_path.iterdir())
