"""Sharing: replicas, names, limits, and what waits for the MPS daemon."""

import pytest
from simnode import GPU, eventually

NAMING = "--enable-resource-naming"
DEV = "nvidia.com/gpu.dev"


def section(*entries, kind="timeSlicing", **options):
    return {"sharing": {kind: {"resources": [{"name": GPU} | dict(e) for e in entries]} | options}}


def start(node, config, *args, gpus=2):
    node.up("dgx-h100", "--gpus", str(gpus))
    node.start_kubelet()
    return node.start_plugin(*args, config=config)


def ids(node, resource=GPU):
    return [d["id"] for d in node.resources()[resource]["devices"]]


def test_replicas_are_numbered_and_their_gpu_is_handed_out_once(node):
    plugin = start(node, section({"replicas": 3}))
    node.wait_for(capacity=6, allocatable=6)
    uuids = [g["uuid"] for g in plugin.status()["gpus"]]
    assert sorted(ids(node)) == sorted(f"{uuid}::{n}" for uuid in uuids for n in range(3))
    wanted = [f"{uuids[1]}::2", f"{uuids[0]}::1", f"{uuids[1]}::0"]
    answer = node.do("raw-allocate", resource=GPU, devices=wanted)["response"]
    assert answer["envs"] == {"NVIDIA_VISIBLE_DEVICES": f"{uuids[0]},{uuids[1]}"}
    # Two replicas of a pod are spread over the GPUs.
    assert len({i.split("::")[0] for i in node.do("preferred", resource=GPU, count=2)["devices"]}) == 2


def test_packed_fills_one_gpu_first(node):
    start(node, section({"replicas": 3}), "--shared-devices-allocation-policy=packed")
    node.wait_for(capacity=6, allocatable=6)
    assert len({i.split("::")[0] for i in node.do("preferred", resource=GPU, count=3)["devices"]}) == 1


def test_one_replica_is_not_shared(node):
    start(node, section({"replicas": 1}, failRequestsGreaterThanOne=True))
    node.wait_for(capacity=2, allocatable=2)
    assert all("::" not in i for i in ids(node))
    node.allocate(2)


def test_shared_by_default_name(node):
    start(node, section({"replicas": 2}, renameByDefault=True))
    node.wait_for("nvidia.com/gpu.shared", capacity=4, allocatable=4)
    assert GPU not in node.resources()


def test_more_than_one_replica_is_refused_by_the_option_and_the_resource(node):
    start(node, section({"replicas": 2}, failRequestsGreaterThanOne=True))
    node.wait_for(capacity=4, allocatable=4)
    answer = node.ask("allocate", resource=GPU, count=2)
    assert not answer["ok"]
    for word in ["failRequestsGreaterThanOne", GPU, "2", "1"]:
        assert word in answer["error"]
    node.allocate(1)


def test_one_gpu_shared_under_another_name_beside_exclusive_ones(node):
    plugin = start(node, section({"rename": DEV, "devices": [0], "replicas": 4}), NAMING, gpus=8)
    node.wait_for(GPU, capacity=7, allocatable=7)
    node.wait_for(DEV, capacity=4, allocatable=4)
    first = plugin.status()["gpus"][0]["uuid"]
    assert {i.split("::")[0] for i in ids(node, DEV)} == {first}
    assert node.allocate(4, DEV)["response"]["envs"] == {"NVIDIA_VISIBLE_DEVICES": first}


def test_without_the_switch_names_and_devices_are_ignored_with_one_warning(node):
    plugin = start(node, section({"rename": DEV, "devices": [0], "replicas": 4}))
    node.wait_for(GPU, capacity=8, allocatable=8)
    assert list(node.resources()) == [GPU]
    warnings = [line for line in plugin.log().splitlines() if " W " in line and NAMING in line]
    assert len(warnings) == 1
    for word in [DEV, "devices", "line"]:
        assert word in warnings[0]


def test_devices_by_count_list_and_rest(node):
    """A list first, then the lowest that no other entry names, then all that is left."""
    node.up("dgx-h100")
    node.start_kubelet()
    gpus = [gpu["uuid"] for gpu in node.gpus()]
    node.start_plugin(NAMING, config=section({"rename": "rest", "devices": "all", "replicas": 2},
                                             {"rename": "two", "devices": 2, "replicas": 3},
                                             {"rename": "these", "devices": [gpus[1], 4], "replicas": 5}))
    for resource, replicas, members in (("rest", 2, [3, 5, 6, 7]), ("two", 3, [0, 2]), ("these", 5, [1, 4])):
        resource = f"nvidia.com/{resource}"
        node.wait_for(resource, capacity=replicas * len(members), allocatable=replicas * len(members))
        assert {i.split("::")[0] for i in ids(node, resource)} == {gpus[m] for m in members}
    assert GPU not in node.resources()


@pytest.mark.parametrize("named_by", ["index", "UUID"])
def test_mig_devices_are_shared_and_named_by(node, named_by):
    node.up("dgx-h100", "--gpus", "1")
    node.partition(0, "3g.40gb*2")
    node.start_kubelet()
    half = "nvidia.com/mig-3g.40gb"
    shared = node.gpus()[0]["mig"][1]["uuid"]
    name = "0:1" if named_by == "index" else shared
    node.start_plugin(NAMING, "--mig-strategy=mixed", config={"sharing": {"timeSlicing": {"resources": [
        {"name": half, "rename": "half.dev", "devices": [name], "replicas": 3}]}}})
    node.wait_for(half, capacity=1, allocatable=1)
    node.wait_for("nvidia.com/half.dev", capacity=3, allocatable=3)
    assert node.allocate(2, "nvidia.com/half.dev")["response"]["envs"] == {"NVIDIA_VISIBLE_DEVICES": shared}


def test_a_list_over_the_limit_is_refused_on_reload_with_the_number_that_fits(node):
    plugin = start(node, section({"replicas": 2}))
    node.wait_for(capacity=4, allocatable=4)
    node.write_config(section({"replicas": 90000}))
    why = eventually(lambda: plugin.status()["configError"], "the reload is refused")
    for word in ["sharing.timeSlicing.resources[0] (line", "90000 replicas", "4194304", "want at most "]:
        assert word in why
    # Each of these ids takes 64 to 68 bytes on the wire.
    assert 4194304 / 68 / 2 < int(why.split("want at most ")[1].split()[0]) < 4194304 / 64 / 2
    assert node.resources()[GPU]["allocatable"] == 4


@pytest.mark.parametrize("before", ["the plugin starts", "after"])
def test_mps_waits_for_its_daemon(node, before):
    node.up("dgx-h100", "--gpus", "2")
    started = node.dir / "root/mps/nvidia.com/gpu/.started"
    if before == "the plugin starts":
        started.parent.mkdir(parents=True)
        started.touch()
    node.start_kubelet()
    plugin = node.start_plugin("--mps-root=/run/nvidia/mps", config=section({"replicas": 2}, kind="mps"))
    if before != "the plugin starts":
        node.wait_for(capacity=4, allocatable=0)
        assert "/mps/nvidia.com/gpu/.started" in plugin.device("GPU-")["reason"]
        started.parent.mkdir(parents=True)
        started.touch()
    node.wait_for(capacity=4, allocatable=4)
    answer = node.allocate(1)["response"]
    assert answer["envs"]["CUDA_MPS_PIPE_DIRECTORY"] == "/mps/nvidia.com/gpu/pipe"
    assert {(m["hostPath"], m["containerPath"]) for m in answer["mounts"]} == {
        ("/run/nvidia/mps/nvidia.com/gpu/pipe", "/mps/nvidia.com/gpu/pipe"), ("/run/nvidia/mps/shm", "/dev/shm")}
    refused = node.ask("allocate", resource=GPU, count=2, pod="greedy")  # the default under MPS
    assert not refused["ok"] and "failRequestsGreaterThanOne" in refused["error"]
    started.unlink()
    node.wait_for(capacity=4, allocatable=0)


def test_mps_wins_over_time_slicing_with_a_warning(node):
    config = section({"replicas": 2}, kind="mps")
    config["sharing"] |= section({"replicas": 3})["sharing"]
    plugin = start(node, config, "--mps-root=/run/nvidia/mps")
    node.wait_for(capacity=4, allocatable=0)
    assert any("sharing.timeSlicing" in line and "ignored" in line for line in plugin.log().splitlines()
               if " W " in line)


def test_mps_shares_no_mig_devices_and_says_so(node):
    node.up("dgx-h100", "--gpus", "1")
    node.partition(0, "3g.40gb*2")
    (node.dir / "root/mps/nvidia.com/gpu").mkdir(parents=True)
    (node.dir / "root/mps/nvidia.com/gpu/.started").touch()
    node.start_kubelet()
    plugin = node.start_plugin("--mig-strategy=single", "--mps-root=/m", config=section({"replicas": 2}, kind="mps"))
    node.wait_for(capacity=4, allocatable=0)
    assert "MPS does not share MIG devices" in plugin.device("MIG-")["reason"]


def test_without_the_switch_the_default_rename_wins_over_a_written_one(node):
    start(node, section({"rename": DEV, "replicas": 2}, renameByDefault=True))
    node.wait_for("nvidia.com/gpu.shared", capacity=4, allocatable=4)
    assert list(node.resources()) == ["nvidia.com/gpu.shared"]


def test_a_gpu_that_is_shared_anew_waits_for_the_pod_that_holds_it_whole(node):
    plugin = start(node, {})
    node.wait_for(capacity=2, allocatable=2)
    held = node.allocate(1, pod="whole")["devices"][0]
    node.write_config(section({"replicas": 2}))
    node.wait_for(capacity=6, allocatable=2)  # the old ids leave later, the held one when it is let go
    assert "pod holds it" in plugin.device(f"{held}::1")["reason"]
    node.do("release", pod="whole")
    node.wait_for(allocatable=4)
