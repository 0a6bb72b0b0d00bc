"""What operators ask of a running plugin: ndp health, health clear, release, resume."""

import json
import re
import stat
import subprocess
import time

import pytest
from simnode import BIN, eventually, open_files, quick

LASTING = quick(recovery={"holdOff": "1h"})


def driver_descriptors(node, plugin):
    return [target for target in open_files(plugin)
            if ("nvidia" in target or ".ndp-sim" in target) and not target.startswith(str(node.kubelet_dir))]


def sessions(node):
    return json.loads(node.sim("sessions", "--json"))


@pytest.mark.long
def test_release_lets_go_of_everything_and_ends_by_itself(node):
    plugin = node.serve(config=LASTING)
    node.await_events()
    node.xid(1, 79)
    node.wait_for(capacity=8, allocatable=7)
    assert len(sessions(node)) == 1
    assert "in use by another client" in node.sim("reset", "--gpu", "3", ok=False)
    assert "in use by another client" in node.sim("mig", "--gpu", "3", "--mode", "on", ok=False)
    lists = len(node.lists())
    assert driver_descriptors(node, plugin), "what must be gone later is there"

    assert "released in 1 instance" in node.ndp("release")
    assert sessions(node) == []
    assert driver_descriptors(node, plugin) == []
    maps = open(f"/proc/{plugin.process.pid}/maps").read()
    assert "libnvidia-ml" not in maps
    node.sim("reset", "--gpu", "3")
    node.sim("reset", "--gpu", "1")
    node.sim("mig", "--gpu", "3", "--mode", "on")
    node.sim("mig", "--gpu", "3", "--mode", "off")
    assert json.loads(node.ndp("health", "--json"))["released"] is True
    assert re.match(r"released since 20\S+: .*nothing is watched until ndp resume", node.ndp("health"))
    assert plugin.status()["driver"]["released"] is True
    assert plugin.metric("ndp_driver_released") == 1 and plugin.metric("ndp_driver_up") == 0
    plugin.signal(1)  # neither a reload nor a scan opens it
    eventually(lambda: "SIGHUP" in plugin.log(), "reloaded")
    time.sleep(1.5)  # three scans, had there been any
    assert sessions(node) == []
    assert len(node.lists()) == lists and node.unhealthy() == {node.uuid(1)}
    assert node.do("raw-allocate", resource="nvidia.com/gpu", devices=[node.uuid(0)])["response"]["envs"]
    assert plugin.get("/livez")[0] == 200 and plugin.get("/readyz")[0] == 200

    released = time.monotonic()
    node.ndp("release", "--for", "2s")  # on top of it: the last word counts
    eventually(lambda: len(sessions(node)) == 1, "it ends by itself")
    assert time.monotonic() - released >= 2
    assert json.loads(node.ndp("health", "--json"))["released"] is False
    eventually(lambda: "evidence of a reset" in plugin.log(), "the reset is seen")
    eventually(lambda: "next: none: a reset was seen" in node.ndp("health"), "and nobody is sent to reset it again")
    assert plugin.metric("ndp_driver_released") == 0 and plugin.metric("ndp_driver_up") == 1


def test_resume_ends_a_release_and_the_node_is_scanned(node):
    plugin = node.serve(config=LASTING | {"flags": {"migStrategy": "mixed"}})
    node.ndp("release")
    node.sim("mig", "--gpu", "3", "--mode", "on")
    node.sim("mig", "--gpu", "3", "--profiles", "1g.10gb*7")
    node.sim("gpu", "--gpu", "6", "--remove")
    assert "resumed in 1 instance" in node.ndp("resume")
    node.wait_for("nvidia.com/mig-1g.10gb", capacity=7, allocatable=7)
    plugin.until_unhealthy(node.gpus()[6]["uuid"], "does not list")


def test_fences_count_while_the_driver_is_released(node):
    fences = node.dir / "fences.yaml"
    plugin = node.serve(config=quick(fencesFile=str(fences)))
    node.ndp("release")
    fences.write_text("fences: [{index: 4, reason: now}]")
    plugin.until_unhealthy(node.uuid(4), "fenced: now")
    node.wait_for(capacity=8, allocatable=7)


def test_release_resume_and_clear_speak_to_all_instances(node):
    first = node.serve(config=LASTING)
    node.await_events()
    second = node.start_plugin(config=LASTING)
    eventually(lambda: len(sessions(node)) == 2, "both have a session")
    assert "released in 2 instances" in node.ndp("release")
    assert sessions(node) == []
    assert "resumed in 2 instances" in node.ndp("resume")
    eventually(lambda: len(sessions(node)) == 2, "both again")
    eventually(lambda: all(s["eventSets"] == 1 for s in sessions(node)), "both wait for events")
    node.xid(1, 79)
    for plugin in (first, second):
        plugin.until_unhealthy(node.uuid(1), "XID 79")
    node.ndp("health", "clear", "1")
    for plugin in (first, second):
        plugin.until_healthy(node.uuid(1))


def test_health_says_everything(node):
    plugin = node.serve(config=LASTING)
    node.await_events()
    node.xid(2, 79)
    plugin.until_unhealthy(node.uuid(2))
    board = json.loads(node.ndp("health", "--json"))
    entry = next(e for e in board["devices"] if e["device"] == node.uuid(2))
    assert entry == plugin.verdict(node.uuid(2))
    assert set(entry) == {"device", "index", "pciBusId", "verdict", "reason", "class", "xid", "since", "count", "nextStep"}
    text = node.ndp("health")
    assert "nvidia.com/gpu: 8 listed, 7 Healthy" in text and "not handed out" not in text
    assert sum(line.endswith("Healthy") for line in text.splitlines() if "GPU-" in line) == 7
    assert "XID 79" in text and "next: " in text and "ndp release" in text
    assert [line.split()[0] for line in text.splitlines() if "GPU-" in line] == [str(n) for n in range(8)]
    line = next(line for line in plugin.log().splitlines() if "device is Unhealthy" in line)
    for word in (node.uuid(2), "XID 79", "reset", entry["since"], "next_step"):
        assert word in line


def test_health_says_why_listed_devices_are_held_back(node):
    node.up("dgx-h100")
    node.start_kubelet()
    (node.dir / "cdi").write_text("no folder")
    node.start_plugin("--device-list-strategy=cdi-cri", f"--driver-root={node.dir / 'root'}")
    node.wait_for(capacity=8, allocatable=0)
    text = node.ndp("health")
    assert "nvidia.com/gpu: 8 listed, 0 Healthy" in text
    assert re.search(r"8 not handed out \(GPU-\S+, …\): .*cdi", text), text


def test_a_gpu_that_is_gone_is_cleared_by_what_it_is_shown_as(node):
    plugin = node.serve(config=LASTING)
    node.await_events()
    gpu = node.gpus()[7]
    node.sim("gpu", "--gpu", "7", "--remove")
    plugin.until_unhealthy(gpu["uuid"])
    eventually(lambda: len(plugin.status()["gpus"]) == 8 and plugin.status()["gpus"][7].get("trouble"), "it is missed")
    for name in (gpu["uuid"], gpu["pci"], "7"):
        assert f"cleared {gpu['uuid']}" in node.ndp("health", "clear", name)


def test_a_release_lasts_from_when_the_driver_is_closed(node):
    node.serve(config=LASTING)
    node.await_events()
    assert "for 1s" in node.ndp("release", "--for", "1s")  # letting go alone can take longer
    eventually(lambda: len(sessions(node)) == 1, "it ends by itself")


def test_who_may_not_look_is_told_so(node):
    node.serve(config=LASTING)
    node.dir.chmod(0o755)
    for user in ["health", "release"]:
        done = subprocess.run(
            ["setpriv", "--reuid=65534", "--clear-groups", "--inh-caps=-all", str(BIN / "ndp"), user,
             f"--kubelet-socket={node.kubelet_dir / 'kubelet.sock'}"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 1 and "root" in done.stderr and "Permission denied" in done.stderr, done.stderr


def test_the_socket_is_private_and_mistakes_are_told(node):
    plugin = node.serve()
    sockets = list((node.kubelet_dir / ".ndp").glob("*.sock"))
    assert len(sockets) == 1
    assert stat.S_IMODE(sockets[0].stat().st_mode) == 0o600
    assert stat.S_IMODE(sockets[0].parent.stat().st_mode) == 0o700
    assert "no GPU '17'" in node.ndp("health", "clear", "17", ok=False)
    assert "--for" in node.ndp("release", "--for", "soon", ok=False)
    assert plugin.stop() == 0
    assert "no instance" in node.ndp("health", ok=False)


def test_the_simulator_refuses_to_set_nothing(node):
    node.up()
    assert "nothing to set" in node.sim("set", "--gpu", "0", ok=False)
