"""Every malformed sharing, resources and devices section: one error, at start and on reload."""

import subprocess

import pytest
from sections import CONTRADICTIONS, MALFORMED
from simnode import BIN, GPU, eventually

NAMING = "--enable-resource-naming"


@pytest.mark.parametrize("case", MALFORMED)
def test_refused_at_start_whatever_the_machine_is(tmp_path, case):
    text, words = MALFORMED[case]
    file = tmp_path / "config.yaml"
    file.write_text("version: v1\n" + text)
    done = subprocess.run([str(BIN / "ndp"), "device-plugin", f"--config-file={file}", NAMING], capture_output=True,
                          text=True, timeout=60, check=False)
    assert done.returncode == 2, done
    assert len(done.stderr.splitlines()) == 1, done.stderr
    for word in [str(file), *words]:
        assert word in done.stderr, done.stderr


def errors(plugin):
    return [line for line in plugin.log().splitlines() if " E " in line]


# Each kind once: the reload below goes through all of them.
@pytest.mark.parametrize("case", ["a device in two entries", "two numbers of replicas under one name",
                                  "an index that is not there", "a list that the kubelet does not take"])
def test_refused_at_start_on_the_machine_that_it_does_not_fit(node, case):
    text, words = CONTRADICTIONS[case]
    node.up("mixed")
    plugin = node.start_plugin(NAMING, f"--config-file={node.write_config('version: v1' + chr(10) + text)}")
    assert plugin.process.wait(20) in (1, 2)
    found = [line for line in plugin.log().splitlines() if " I " not in line and " W " not in line]
    assert len(found) == 1, plugin.log()
    for word in words:
        assert word in found[0], found[0]


def test_refused_on_reload_while_the_old_one_runs_on(node):
    """One plugin, one bad file after another: each is refused with its own error, and nothing else happens."""
    good = {"sharing": {"timeSlicing": {"resources": [{"name": GPU, "replicas": 2}]}}}
    node.up("mixed")
    node.start_kubelet()
    plugin = node.start_plugin(NAMING, config=good)
    node.wait_for(capacity=8, allocatable=8)
    lists = len(node.events("list"))
    for number, (case, (text, words)) in enumerate((MALFORMED | CONTRADICTIONS).items(), 1):
        node.write_config("version: v1\n" + text)
        eventually(lambda: len(errors(plugin)) >= number, f"refused: {case}")  # noqa: B023
        for word in words:
            assert word in errors(plugin)[-1].replace('\\"', '"'), case
    assert len(errors(plugin)) == len(MALFORMED | CONTRADICTIONS)
    assert plugin.status()["configError"].count("(line ") >= 1
    assert "ndp_config_error 1" in plugin.get("/metrics")[1]
    assert plugin.get("/readyz")[0] == 200
    assert len(node.events("list")) == lists
    node.allocate(2)
    node.write_config(good)
    eventually(lambda: "configError" not in plugin.status(), "a good file ends it")
