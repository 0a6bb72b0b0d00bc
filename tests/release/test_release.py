"""What is shipped: its size, what it needs, its names, and where `make install` puts it."""

import os
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).parents[2]
BIN = pathlib.Path(os.environ.get("NDP_BIN_DIR", ROOT / "build/release/bin"))
LINKS = ["nvidia-device-plugin", "gpu-feature-discovery", "mps-control-daemon", "config-manager"]


def needed(program: pathlib.Path) -> set[str]:
    out = subprocess.run(["readelf", "-d", str(program)], capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"\(NEEDED\).*\[(.*)\]", out))


def test_needs_libc_libm_and_the_loader_alone():
    assert needed(BIN / "ndp") <= {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2"}


def test_is_ten_megabytes_at_most_when_stripped(tmp_path):
    subprocess.run(["strip", "-o", str(tmp_path / "ndp"), str(BIN / "ndp")], check=True)
    assert (tmp_path / "ndp").stat().st_size <= 10 * 1000 * 1000


def test_says_version_and_commit():
    out = subprocess.run([str(BIN / "ndp"), "--version"], capture_output=True, text=True, check=True).stdout
    assert re.fullmatch(r"ndp \d+\.\d+\.\d+ \(commit [0-9a-f]{7,}(-dirty)?\)\n", out), out


@pytest.mark.parametrize("name", LINKS)
def test_the_old_names_are_links(name):
    assert os.readlink(BIN / name) == "ndp"


def test_the_old_name_runs_the_plugin():
    out = subprocess.run([str(BIN / "nvidia-device-plugin"), "--help"], capture_output=True, text=True, check=True)
    assert "--mig-strategy" in out.stdout


def test_the_simulated_library_lies_beside_the_programs():
    assert (BIN / "libnvidia-ml.so.1").exists()
    symbols = subprocess.run(["nm", "-D", "--defined-only", str(BIN / "libnvidia-ml.so.1")],
                             capture_output=True, text=True, check=True).stdout
    names = {line.split()[-1].split("@")[0] for line in symbols.splitlines()}
    assert names and all(name.startswith("nvml") for name in names)


def test_install_puts_things_where_they_go(tmp_path):
    done = subprocess.run(["make", "-C", str(ROOT), "install", f"DESTDIR={tmp_path}", "PREFIX=/usr"],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    for name in ["ndp", "ndp-sim", *LINKS]:
        assert (tmp_path / "usr/bin" / name).exists(), name
    assert not (tmp_path / "usr/bin/libnvidia-ml.so.1").exists()
    done = subprocess.run([str(tmp_path / "usr/bin/ndp-sim"), "up", "--profile", "pcie-t4", "--dir", str(tmp_path / "d")],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
