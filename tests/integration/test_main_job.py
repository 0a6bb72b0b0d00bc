"""The main job: eight GPUs offered, handed out, lost, back."""

import re
import signal

from simnode import GPU, QUICK_RECOVERY, eventually


def uuids(node):
    return [d["id"] for d in node.plugins[0].status()["resources"][0]["devices"]]


def test_offers_every_gpu_with_its_numa_node(node):
    node.serve()
    devices = node.resources()[GPU]["devices"]
    assert len(devices) == 8
    assert sorted(d["numa"] for d in devices) == [[0]] * 4 + [[1]] * 4


def test_two_gpus_come_with_their_uuids_in_index_order(node):
    plugin = node.serve()
    answer = node.allocate(2)
    order = [g["uuid"] for g in plugin.status()["gpus"]]
    expected = ",".join(u for u in order if u in answer["devices"])
    assert answer["response"]["envs"] == {"NVIDIA_VISIBLE_DEVICES": expected}


def test_repeated_ids_count_once_and_order_does_not_matter(node):
    plugin = node.serve()
    ids = uuids(node)
    answer = node.do("raw-allocate", resource=GPU, devices=[ids[3], ids[1], ids[3]])
    assert answer["response"]["envs"]["NVIDIA_VISIBLE_DEVICES"] == f"{ids[1]},{ids[3]}"
    assert plugin.status()["gpus"][1]["uuid"] == ids[1]


def test_an_empty_request_gets_an_empty_answer(node):
    node.serve()
    assert node.do("raw-allocate", resource=GPU, devices=[])["response"].get("envs", {}) == {}


def test_an_unknown_id_is_refused_by_name(node):
    node.serve()
    answer = node.ask("raw-allocate", resource=GPU, devices=["GPU-nobody"])
    assert not answer["ok"]
    assert "GPU-nobody" in answer["error"] and GPU in answer["error"]


def test_index_strategy_and_device_specs(node):
    node.up()
    node.start_kubelet()
    node.start_plugin("--device-id-strategy=index", "--pass-device-specs", "--device-list-strategy=volume-mounts")
    node.wait_for(allocatable=8)
    ids = uuids(node)
    response = node.do("raw-allocate", resource=GPU, devices=[ids[5], ids[2]])["response"]
    assert response["envs"]["NVIDIA_VISIBLE_DEVICES"] == "/var/run/nvidia-container-devices"
    assert [m["containerPath"] for m in response["mounts"]] == [
        "/var/run/nvidia-container-devices/2", "/var/run/nvidia-container-devices/5"]
    assert {m["hostPath"] for m in response["mounts"]} == {"/dev/null"}
    paths = [d["containerPath"] for d in response["devices"]]
    assert "/dev/nvidia2" in paths and "/dev/nvidia5" in paths and "/dev/nvidiactl" in paths
    assert "/dev/nvidia3" not in paths


def test_allocation_makes_no_driver_call(node):
    node.serve(config={"rescanInterval": "1h", "health": {"polling": {"enabled": False}}})
    eventually(lambda: node.plugins[0].status()["driver"].get("linksRead"), "links are read")
    before = node.calls()
    for _ in range(20):
        node.do("preferred", resource=GPU, count=2)
        node.do("raw-allocate", resource=GPU, devices=uuids(node)[:2])
    after = node.calls()
    for event_wait in ("nvmlEventSetWait_v2", "nvmlErrorString"):  # goes on, and words its timeouts
        after.pop(event_wait, None)
        before.pop(event_wait, None)
    assert after == before


def test_an_xid_takes_one_gpu_and_clearing_brings_it_back(node):
    plugin = node.serve(config=QUICK_RECOVERY)
    node.sim("fault", "--gpu", "3", "--xid", "79")
    node.wait_for(allocatable=7)
    device = plugin.device(plugin.status()["gpus"][3]["uuid"])
    assert device["health"] == "Unhealthy" and "79" in device["reason"]
    node.sim("clear")
    node.wait_for(allocatable=8)


def test_a_harmless_xid_marks_nothing(node):
    plugin = node.serve()
    node.sim("fault", "--gpu", "1", "--xid", "31")
    eventually(lambda: "31" in plugin.log() and "xid" in plugin.log().lower(), "the XID is logged")
    assert node.resources()[GPU]["allocatable"] == 8


def test_sigterm_ends_streams_removes_sockets_and_exits_zero(node):
    plugin = node.serve()
    assert plugin.stop() == 0
    assert not list(node.kubelet_dir.glob("nvidia-*.sock"))


def test_the_log_starts_with_the_settings_and_their_origins(node):
    plugin = node.serve(env={"MIG_STRATEGY": "none"})
    line = next(line for line in plugin.log().splitlines() if " settings " in line)
    assert re.search(r'mig-strategy.*environment MIG_STRATEGY', line)


def test_sigint_is_a_stop_too(node):
    plugin = node.serve()
    plugin.signal(signal.SIGINT)
    assert plugin.process.wait(10) == 0
