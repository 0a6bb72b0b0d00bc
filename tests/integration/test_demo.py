"""`ndp-sim run`, which `make demo` shows: a whole node from its start to its end, told to a person."""

import os
import pathlib
import subprocess

import pytest
from simnode import BIN, eventually, signal

NDP_SIM = str(BIN / "ndp-sim")


def start(tmp_path, *args):
    """The demo with its own temporary folder below tmp_path/tmp; its errors go into tmp_path/errors."""
    (tmp_path / "tmp").mkdir()
    with (tmp_path / "errors").open("w") as errors:
        demo = subprocess.Popen([NDP_SIM, "run", *args], stdout=subprocess.PIPE, stderr=errors, text=True,
                                env=os.environ | {"TMPDIR": str(tmp_path / "tmp")})  # fmt: skip
    STARTED.append(demo)
    return demo


STARTED = []


@pytest.fixture(autouse=True)
def ended():
    """A test that fails leaves no demo behind."""
    yield
    while STARTED:
        demo = STARTED.pop()
        if demo.poll() is None:
            demo.terminate()
            demo.communicate(timeout=60)


def until(demo, words):
    """Reads what it shows up to the line with these words; all of it."""
    shown = ""
    for line in demo.stdout:
        shown += line
        if words in line:
            return shown
    pytest.fail(f"the demo does not show {words!r}: {shown}")


def processes(tmp_path):
    """The processes that have to do with the folder."""
    found = []
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            command = (entry / "cmdline").read_bytes()
            if str(tmp_path).encode() in command and (entry / "stat").read_text().rsplit(")", 1)[1].split()[0] != "Z":
                found.append(command.replace(b"\0", b" ").decode())
        except OSError:
            continue
    return found


def assert_nothing_is_left(tmp_path):
    assert not list((tmp_path / "tmp").iterdir())
    # A child of a killed child is nobody's to wait for.
    eventually(lambda: not processes(tmp_path), "every process of it has ended")


def script(tmp_path, text):
    """A program that stands in for ndp."""
    file = tmp_path / "stand-in"
    file.write_text(f"#!/bin/bash\n{text}\n")
    file.chmod(0o755)
    return str(file)


def run(tmp_path, profile, **env):
    """The demo with its own temporary folder below tmp_path."""
    return subprocess.run([BIN / "ndp-sim", "run", "--profile", profile],
                          env=os.environ | {"TMPDIR": str(tmp_path)} | env, capture_output=True, text=True, timeout=120,
                          check=False)  # fmt: skip


@pytest.mark.parametrize("path, name", [("/usr/bin:/bin", NDP_SIM), (f"/usr/bin:/bin:{BIN}", "ndp-sim")])
def test_what_comes_next_is_shown_as_it_is_typed(tmp_path, path, name):
    shown = run(tmp_path, "pcie-t4", PATH=path)
    assert shown.stdout.endswith(f" To play with such a node: {name} run --keep\n")


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


@pytest.mark.parametrize("at, how", [
    ("A machine:", signal.SIGINT), ("The device plugin starts", signal.SIGTERM), ("its log, while", signal.SIGINT),
    ("A pod asks", signal.SIGHUP), ("fails: the driver reports", signal.SIGINT), ("why:", signal.SIGTERM),
    ("The GPU is reset", signal.SIGINT), ("The plugin is told to end", signal.SIGQUIT),
])  # fmt: skip
def test_a_signal_in_any_phase_ends_all_of_it(tmp_path, at, how):
    demo = start(tmp_path, "--profile", "pcie-t4")
    until(demo, at)
    demo.send_signal(how)
    demo.communicate(timeout=60)
    assert demo.returncode == 1 and "interrupted" in (tmp_path / "errors").read_text()
    assert_nothing_is_left(tmp_path)


def test_a_kept_node_can_be_played_with_and_is_ended_by_a_signal(tmp_path):
    demo = start(tmp_path, "--profile", "dgx-h100", "--keep")
    assert "run --keep" not in until(demo, "The node stays up")
    hints = until(demo, " clear --dir ").splitlines()
    assert len(hints) == 5
    for hint in hints:  # none of them needs a PATH
        done = subprocess.run(hint, shell=True, capture_output=True, text=True, timeout=60, check=False,
                              env=os.environ | {"PATH": "/usr/bin:/bin"})  # fmt: skip
        assert done.returncode == 0, f"{hint}: {done.stdout}{done.stderr}"
    assert processes(tmp_path)
    demo.send_signal(signal.SIGINT)
    demo.communicate(timeout=60)
    assert demo.returncode == 0
    assert_nothing_is_left(tmp_path)


# What hangs holds a child of its own, which has to go too.
@pytest.mark.parametrize("text, at", [("sleep 1000.1 $0 & wait", "its log, while"),
                                      ('if [ $1 = health ]; then sleep 1000.1 & wait; fi; exec {ndp} "$@"', "$ ")])
def test_a_signal_ends_what_hangs(tmp_path, text, at):
    stand_in = script(tmp_path, f'echo $$ >> {tmp_path}/pids; {text.format(ndp=BIN / "ndp")}')
    demo = start(tmp_path, "--profile", "pcie-t4", "--plugin", stand_in)
    until(demo, at)
    if "health" in text:
        until(demo, "why:")
        eventually(lambda: len((tmp_path / "pids").read_text().split()) == 2, "ndp health runs")
    else:
        eventually((tmp_path / "pids").exists, "the plugin runs")
    groups = (tmp_path / "pids").read_text().split()
    demo.send_signal(signal.SIGTERM)
    demo.communicate(timeout=60)
    assert demo.returncode == 1
    assert_nothing_is_left(tmp_path)
    for group in groups:
        eventually(lambda group=group: not alive(int(group)), "what the stand-in has started has ended")


def alive(group):
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def test_the_folder_of_a_running_stand_in_is_refused(node):
    node.serve("pcie-t4", 4)
    refused = node.sim("run", ok=False)
    assert refused.count("\n") == 1 and "a kubelet stand-in plays here already" in refused
    node.wait_for(capacity=4, allocatable=4, endpoints=1)


def test_a_plugin_that_is_no_program_is_bad_input(tmp_path):
    demo = start(tmp_path, "--plugin", f"{tmp_path}/nope")
    shown, _ = demo.communicate(timeout=60)
    errors = (tmp_path / "errors").read_text()
    assert demo.returncode == 2 and shown == "" and errors.count("\n") == 1
    assert f"--plugin {tmp_path}/nope: no program to start" in errors
    assert_nothing_is_left(tmp_path)


@pytest.mark.parametrize("text, why", [("echo this is why; exit 3", "the plugin has ended with exit code 3"),
                                       ("", "the plugin has ended with exit code 0")])  # fmt: skip
def test_a_plugin_that_does_not_serve_is_told_with_its_log(tmp_path, text, why):
    demo = start(tmp_path, "--profile", "pcie-t4", "--plugin", script(tmp_path, text))
    demo.communicate(timeout=60)
    errors = (tmp_path / "errors").read_text()
    assert demo.returncode == 1 and why in errors
    assert ("  this is why\n" in errors) == ("this is why" in text)
    assert_nothing_is_left(tmp_path)


def test_a_plugin_that_cannot_be_started_leaves_nothing(tmp_path):
    file = tmp_path / "stand-in"
    file.write_bytes(b"\x7fELF no program")
    file.chmod(0o755)
    demo = start(tmp_path, "--profile", "pcie-t4", "--plugin", str(file))
    demo.communicate(timeout=60)
    assert demo.returncode == 1 and f"start {file}" in (tmp_path / "errors").read_text()
    assert_nothing_is_left(tmp_path)


def test_a_folder_that_was_named_stays(tmp_path):
    demo = start(tmp_path, "--profile", "pcie-t4", "--dir", f"{tmp_path}/d", "--plugin", script(tmp_path, "exit 3"))
    demo.communicate(timeout=60)
    assert demo.returncode == 1
    assert f"The plugin's log is {tmp_path}/d/plugin.log" in (tmp_path / "errors").read_text()
    assert (tmp_path / "d/plugin.log").exists()
    assert_nothing_is_left(tmp_path)
