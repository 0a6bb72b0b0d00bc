"""Each mistake gets one clear error and the right exit status, and leaves what runs untouched."""

import json
import os
import resource
import subprocess

import pytest
from simnode import BIN, GPU, eventually


def run(*args, env=None):
    return subprocess.run([str(BIN / "ndp"), "device-plugin", *args], capture_output=True, text=True, timeout=30,
                          env=dict(os.environ) | (env or {}), check=False)


@pytest.mark.parametrize(("args", "words"), [
    (["--no-such-flag"], ["--no-such-flag"]),
    (["--mig-stategy=none"], ["--mig-stategy", "--mig-strategy"]),
    (["--mig-strategy=sometimes"], ["mig-strategy", "sometimes", "none", "single", "mixed"]),
    (["--device-list-strategy=envvar,smoke"], ["device-list-strategy", "smoke"]),
    (["--device-id-strategy=name"], ["device-id-strategy", "name", "uuid", "index"]),
    (["--rescan-interval=soon"], ["rescan-interval", "soon"]),
    (["--listen-address=nowhere"], ["listen-address", "nowhere"]),
    (["--config-file=/no/such/file"], ["/no/such/file"]),
    (["--config-file=/tmp"], ["/tmp", "folder"]),
    (["stray"], ["stray"]),
    (["--device-list-strategy="], ["device-list-strategy", "envvar"]),
    (["--pass-device-specs=maybe"], ["pass-device-specs", "maybe", "true"]),
    (["--shared-devices-allocation-policy=random"], ["shared-devices-allocation-policy", "random", "packed"]),
    (["--imex-channel-ids=1"], ["imex-channel-ids", "1", "0"]),
    (["--rescan-interval=-5s"], ["rescan-interval", "-5s"]),
    (["--rescan-interval=0s"], ["rescan-interval", "0s"]),
    (["--v=loud"], ["--v", "loud"]),
    (["--log-format=xml"], ["log-format", "xml", "json"]),
    (["--listen-address=:99999"], ["listen-address", "99999"]),
    (["--mig-strategy"], ["mig-strategy"]),
    (["--fail-on-init-error", "false"], ["--fail-on-init-error=false"]),
])  # fmt: skip
def test_a_bad_command_line_is_refused(args, words):
    done = run(*args)
    assert done.returncode in (1, 2), done
    errors = [line for line in done.stderr.splitlines() if line and "--help" not in line]
    assert len(errors) == 1, done.stderr
    for word in words:
        assert word in errors[0]


def test_a_pipe_is_no_configuration(tmp_path):
    pipe = tmp_path / "config.yaml"
    os.mkfifo(pipe)
    done = run(f"--config-file={pipe}")
    assert done.returncode == 2, done
    assert done.stderr.splitlines() == [
        f"ndp device-plugin: configuration file {pipe}: is a pipe: want a file, YAML or JSON"]


@pytest.mark.parametrize(("text", "words"), [
    ("version: v2\n", ["version", "v2", "v1"]),
    ("version: v1\nflags: [\n", ["line"]),
    ("- a\n- list\n", ["map", "list"]),
    ("version: v1\nflags:\n  migStrategy: 7g\n", ["flags.migStrategy", "line 3", "7g"]),
    ("version: v1\nflags:\n  plugin:\n    passDeviceSpecs: maybe\n", ["passDeviceSpecs", "line 4", "true or false"]),
    ("version: v1\nflags:\n  plugin: {deviceListStrategy: {a: b}}\n", ["deviceListStrategy", "line 3", "list"]),
    (",version: v1\n", ["line 1", "document"]),
    ("version: v1\nrescanInterval: [1s]\n", ["rescanInterval", "line 2"]),
    ("version: [v1]\n", ["version", "line 1"]),
    ("version: v1\nhealth:\n  recovery: {probes: none}\n", ["health.recovery.probes", "line 3", "number"]),
    ("version: v1\nimex: {channelIDs: [7]}\n", ["imex.channelIDs", "line 2", "7"]),
    ("version: v1\nflags: {migStrategy: mixed, mpsRoot: /m}\nsharing:\n  mps:\n    resources: [{name: gpu, replicas: 2}]\n",
     ["mixed", "mps"]),
    ("version: v1\nsharing:\n  mps:\n    resources: [{name: gpu, replicas: 2}]\n", ["mps-root"]),
    ("version: v1\nflags: 3\n", ["flags", "line 2"]),
    ("version: v1\nflags:\n\tmigStrategy: none\n", ["line 3", "tabs"]),
    pytest.param("version: v1\nflags:\n  migStrategy: no\0ne\n", ["line 3", "NUL"], id="a NUL character"),
    ('version: v1\nweb:\n  listenAddress: "/tmp/a\\0b"\n', ["line 3", "NUL"]),
    ('version: v1\nflags:\n  migStrategy: "two\\nlines\\e[31m"\n', ["flags.migStrategy", "line 3", "mixed"]),
    pytest.param("version: v1\nflags:\n  migStrategy: " + "x" * 100_000, ["flags.migStrategy", "line 3", "mixed"], id="a long value"),
    pytest.param("version: v1\nflags: " + "[" * 20_000, ["line 2", "deep"], id="deep"),
    ("version: v1\nflags: &f [*f, *f]\n", ["line 2", "deep"]),
    pytest.param("a: &a " + "x" * 1_000_000 + "\nb: [" + "*a, " * 3_000 + "]\n", ["line 1", "16 MiB"],
                 id="expands to gigabytes"),
    pytest.param("version: v1\n#" + "x" * (10 << 20), ["4 MiB"], id="ten megabytes"),
    ("version: v1\nrescanInterval: 99999999999999h\n", ["rescanInterval", "line 2", "too long"]),
    ("version: v1\ndevices: {include: [{memory: 5}]}\n", ["devices.include[0]", "line 2", "minMemory"]),
    ("\ufeffversion: v1\r\nflags:\r\n  migStrategy: 7g\r\n", ["flags.migStrategy", "line 3", '"7g"']),
    ("version: v1\nsharing:\n  timeSlicing:\n    resources:\n    - {name: nvidia.com/gpu, replicas: -1}\n",
     ["replicas", "line 5"]),
])  # fmt: skip
def test_a_bad_configuration_file_is_refused(tmp_path, text, words):
    file = tmp_path / "config.yaml"
    file.write_text(text)
    done = run(f"--config-file={file}")
    assert done.returncode == 2, done
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert len(done.stderr) < 8_000 and "\x1b" not in done.stderr
    for word in words:
        assert word in done.stderr, done.stderr


@pytest.mark.parametrize(("name", "value", "word"), [
    ("MIG_STRATEGY", "often", "mixed"), ("PASS_DEVICE_SPECS", "perhaps", "true"), ("RESCAN_INTERVAL", "3", "30s"),
    ("DEVICE_ID_STRATEGY", "", "uuid"), ("CONFIG_FILE", "/no/such/file", "/no/such/file"),
])  # fmt: skip
def test_a_bad_variable_is_named(name, value, word):
    done = run(env={name: value})
    assert done.returncode in (1, 2) and len(done.stderr.splitlines()) == 1
    for wanted in (word, value) if name == "CONFIG_FILE" else (name, value, word):
        assert wanted in done.stderr, done.stderr


def test_too_few_open_files_are_refused_and_a_low_soft_limit_is_raised(node):
    node.up()
    node.start_kubelet()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (32, hard))
    try:
        node.start_plugin()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    node.wait_for(allocatable=8)
    done = subprocess.run(["bash", "-c", f"ulimit -n 32; exec {BIN}/ndp device-plugin"], capture_output=True, text=True,
                          timeout=60, check=False)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1, done.stderr
    for word in ["ulimit -n", "32", "64"]:
        assert word in done.stderr


def test_an_unknown_key_is_a_warning_and_an_error_when_strict(node):
    node.up()
    node.start_kubelet()
    config = {"flags": {"migStategy": "none"}}
    plugin = node.start_plugin(config=config)
    node.wait_for(allocatable=8)
    line = next(line for line in plugin.log().splitlines() if "migStategy" in line and " W " in line)
    assert "flags.migStategy" in line and "line" in line and "migStrategy" in line
    done = run(f"--config-file={node.write_config(config)}", "--strict-config")
    assert done.returncode == 2 and "flags.migStategy" in done.stderr


def test_no_driver_lists_every_path_and_the_loaders_words(tmp_path):
    done = run(f"--driver-root-ctr-path={tmp_path}", f"--kubelet-socket={tmp_path}/kubelet.sock")
    assert done.returncode == 1
    assert f"{tmp_path}/usr/lib64/libnvidia-ml.so.1" in done.stderr
    assert "cannot open shared object file" in done.stderr
    assert "--driver-root-ctr-path says where" in done.stderr


def test_a_driver_that_only_the_loader_finds_says_what_cdi_lacks(node):
    """The default of --driver-root-ctr-path is a folder that a container has and a bare node has not."""
    node.up()
    node.start_kubelet()
    library = next((node.dir / "root").rglob("libnvidia-ml.so.1")).parent
    plugin = node.start_plugin("--device-list-strategy=cdi-cri", f"--driver-root-ctr-path={node.dir}/nowhere",
                               env={"LD_LIBRARY_PATH": str(library)})
    node.wait_for(capacity=8, allocatable=0)
    line = next(line for line in plugin.log().splitlines() if "CDI files cannot be had" in line)
    assert f"{node.dir}/nowhere, which does not exist: --driver-root-ctr-path must name" in line


def test_paths_may_be_relative_to_where_the_plugin_is_started(node):
    node.up()
    node.start_kubelet()
    (node.dir / "config.yaml").write_text("version: v1\nflags: {plugin: {deviceListStrategy: [cdi-cri]}}\n")
    done = subprocess.run([str(BIN / "ndp"), "inventory", "--driver-root-ctr-path=root", "--host-root=root"],
                          cwd=node.dir, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)["gpus"]) == 8
    with (node.dir / "log").open("w") as log:
        plugin = subprocess.Popen(
            [str(BIN / "ndp"), "device-plugin", "--driver-root-ctr-path=root", "--host-root=root", "--cdi-spec-dir=cdi",
             "--kubelet-socket=kubelet/kubelet.sock", "--config-file=config.yaml"], cwd=node.dir, stderr=log)  # fmt: skip
    try:
        node.wait_for(capacity=8, allocatable=8)
        assert len(node.cdi()["devices"]) == 8
    finally:
        plugin.terminate()
        plugin.wait(60)


def test_a_refused_reload_keeps_the_old_configuration(node):
    plugin = node.serve(config={"flags": {"migStrategy": "none"}})
    node.write_config({"flags": {"migStrategy": "wrong"}})
    eventually(lambda: "configError" in plugin.status(), "the reload is refused")
    assert "flags.migStrategy" in plugin.status()["configError"]
    assert node.resources()[GPU]["allocatable"] == 8
    assert plugin.get("/readyz")[0] == 200
    node.write_config({"flags": {"migStrategy": "none"}})
    eventually(lambda: "configError" not in plugin.status(), "a good file ends it")


@pytest.mark.parametrize(("fields", "words"), [
    ({"count": 9}, ["9", "8"]),
    ({"count": 1, "must_include": ["GPU-nobody"]}, ["GPU-nobody"]),
    ({"count": 2, "available": ["GPU-nobody", "GPU-else"]}, ["GPU-nobody"]),
])  # fmt: skip
def test_an_impossible_preferred_allocation_is_refused(node, fields, words):
    node.serve()
    answer = node.ask("preferred", resource=GPU, **fields)
    assert not answer["ok"], answer
    for word in words:
        assert word in answer["error"]
