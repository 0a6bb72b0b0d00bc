"""`ndp cdi`: specifications for people, and for runtimes that are used without the plugin."""

import json
import os
import subprocess

import pytest
import yaml
from simnode import BIN


def run(*args, env=None, cwd=None):
    return subprocess.run([str(BIN / "ndp"), "cdi", *args], capture_output=True, text=True, timeout=60,
                          env=dict(os.environ) | (env or {}), cwd=cwd, check=False)  # fmt: skip


def generate(node, *args, driver_root=""):
    root = node.dir / "root"
    return run("generate", f"--driver-root-ctr-path={root / driver_root}", f"--host-root={root}", *args)


@pytest.mark.parametrize(("profile", "names"), [
    ("pcie-t4", ["0", "1", "2", "3", "all"]),
    ("jetson", ["0", "all"]),
    ("thor", ["0", "all"]),
    ("wsl", ["all"]),
])  # fmt: skip
def test_every_platform_has_a_specification(node, profile, names):
    node.up(profile)
    done = generate(node, "--format=json")
    assert done.returncode == 0, done.stderr
    spec = json.loads(done.stdout)
    assert spec["kind"] == "nvidia.com/gpu"
    assert [device["name"] for device in spec["devices"]] == names


def test_both_formats_say_the_same_and_are_valid(node):
    node.up("dgx-h100")
    for name in ["spec.json", "spec.yaml"]:
        done = generate(node, f"--output={node.dir / name}", "--device-name-strategy=uuid", "--no-all-device")
        assert done.returncode == 0 and done.stdout == "", done
        checked = run("validate", str(node.dir / name))
        assert checked.returncode == 0 and "8 devices" in checked.stdout, checked
    assert json.loads((node.dir / "spec.json").read_text()) == yaml.safe_load((node.dir / "spec.yaml").read_text())


def test_the_outputs_folder_is_made_and_paths_may_be_relative(node):
    node.up("pcie-t4")
    done = run("generate", "--driver-root-ctr-path=root", "--host-root=root", "--output=etc/cdi/nvidia.yaml", cwd=node.dir)
    assert done.returncode == 0 and done.stderr == "", done
    written = node.dir / "etc/cdi/nvidia.yaml"
    assert written.read_text() == generate(node).stdout
    assert written.parent.stat().st_mode & 0o777 == 0o755
    assert "nvidia.com/gpu=all" in run("list", "--spec-dir=etc/cdi", cwd=node.dir).stdout


def test_an_output_that_is_no_file_is_written_into(node):
    node.up("pcie-t4")
    text = generate(node).stdout
    # As /dev/stdout is, which a program that replaces it would take from the machine.
    (node.dir / "stdout").symlink_to("/proc/self/fd/1")
    assert generate(node, f"--output={node.dir / 'stdout'}").stdout == text
    (node.dir / "link").symlink_to(node.dir / "target")
    assert generate(node, f"--output={node.dir / 'link'}").returncode == 0
    assert (node.dir / "link").is_symlink() and (node.dir / "target").read_text() == text


def test_the_plugin_and_the_command_write_the_same(node):
    node.up("dgx-h100")
    node.start_kubelet()
    node.start_plugin("--device-list-strategy=cdi-cri")
    node.wait_for(capacity=8, allocatable=8)
    # The root is what a host would have at /.
    done = generate(node, "--format=json", "--vendor=k8s.device-plugin.nvidia.com", "--no-all-device",
                    "--device-name-strategy=uuid", "--nvidia-cdi-hook-path=/usr/bin/nvidia-ctk",
                    "--driver-root=/")  # fmt: skip
    assert json.loads(done.stdout) == node.cdi()


@pytest.mark.parametrize(("args", "name", "word"), [
    (["cdi", "validate"], "ndp cdi validate", "FILE is required"),
    (["cdi"], "ndp cdi", "subcommand"),
    (["cdi", "generate", "--format=xml"], "ndp cdi generate", "xml"),
    (["examine"], "ndp examine", "GPU is required"),
    (["inventory", "--hots-root=/"], "ndp inventory", "--hots-root"),
])  # fmt: skip
def test_an_error_of_the_command_line_begins_with_the_commands_name(args, name, word):
    done = subprocess.run([str(BIN / "ndp"), *args], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2 and done.stdout == "", done
    first, second = done.stderr.splitlines()
    assert first.startswith(f"{name}: ") and word in first
    assert second == f"{name} --help lists the options"


def test_list_names_what_runtimes_can_resolve(node):
    node.up("pcie-t4")
    (node.dir / "specs").mkdir()
    generate(node, f"--output={node.dir / 'specs/nvidia.yaml'}")
    done = run("list", f"--spec-dir={node.dir / 'specs'}")
    assert done.returncode == 0
    assert [line.split("\t")[0] for line in done.stdout.splitlines()] == [
        f"nvidia.com/gpu={name}" for name in ["0", "1", "2", "3", "all"]
    ]
    (node.dir / "specs/broken.json").write_text("{")
    done = run("list", f"--spec-dir={node.dir / 'specs'}")
    assert done.returncode == 1 and "broken.json" in done.stderr
    assert len(done.stdout.splitlines()) == 5, "the good file counts all the same"


@pytest.mark.parametrize(("text", "words"), [
    ("{", ["spec.json"]),
    ('{"cdiVersion": "0.5.0", "kind": "a/b", "devices": []}', ["no devices"]),
    ('{"cdiVersion": "0.5.0", "kind": "a/b", "devices": [{"name": "x", "containerEdits": {}}]}', ["x"]),
    ('{"cdiVersion": "0.5.0", "kind": "a/b", "devices": [{"name": "x", "containerEdits": {"mounts": [\n'
     '{"hostPath": "/a", "containerPath": "/a"},\n{"hostPath": "/b"}]}}]}', ["line 3: device x: mount", "/b"]),
    ('{"cdiVersion": "0.5.0", "kind": "a/b", "colour": 1, "devices": []}', ["colour"]),
])  # fmt: skip
def test_validate_says_what_is_wrong(tmp_path, text, words):
    (tmp_path / "spec.json").write_text(text)
    done = run("validate", str(tmp_path / "spec.json"))
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1, done
    for word in words:
        assert word in done.stderr


def test_no_gpu_and_bad_options_are_one_error_each(node):
    node.up("none")
    done = generate(node)
    assert done.returncode == 1 and "neither NVML nor the files of WSL or Tegra" in done.stderr
    assert run("generate", "--format=xml").returncode == 2
    assert run("validate", str(node.dir / "nothing.json")).returncode == 1
    assert run().returncode == 2
