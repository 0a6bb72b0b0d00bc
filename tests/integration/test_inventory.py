"""What the driver does not tell, tells wrongly or late holds nobody up."""

import pytest
from simnode import GPU, eventually


def test_everything_but_the_uuid_is_optional(node):
    """One GPU answers nothing but what it is called; it is offered all the same."""
    node.up("dgx-h100", "--gpus", "4")
    for function in ("Name", "MinorNumber", "MemoryInfo", "CudaComputeCapability", "Brand", "Architecture",
                     "AddressingMode", "MigMode", "GpuFabricInfoV", "PciInfo_v3", "SupportedEventTypes",
                     "TopologyCommonAncestor"):  # fmt: skip
        # Health asks for the memory, and takes any other error for a sign.
        error = "3" if function == "MemoryInfo" else "999"
        node.sim("function", "--gpu", "2", "--function", f"nvmlDeviceGet{function}", "--error", error)
    node.start_kubelet()
    plugin = node.start_plugin()
    node.wait_for(capacity=4, allocatable=4)
    uuid = node.gpus()[2]["uuid"]
    assert node.do("raw-allocate", resource=GPU, devices=[uuid])["response"]["envs"]["NVIDIA_VISIBLE_DEVICES"] == uuid
    assert plugin.get("/readyz")[0] == 200


def test_functions_that_the_library_lacks_stop_nothing(node):
    node.up("dgx-h100", "--gpus", "2")
    for function in ("nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetGpuFabricInfoV", "nvmlDeviceGetFieldValues",
                     "nvmlEventSetWait_v2", "nvmlDeviceGetNvLinkRemoteDeviceType", "nvmlDeviceGetAddressingMode",
                     "nvmlDeviceGetMigMode", "nvmlDeviceGetRemappedRows"):
        node.sim("function", "--function", function, "--missing")
    node.start_kubelet()
    node.start_plugin()
    node.wait_for(capacity=2, allocatable=2)
    node.sim("fault", "--gpu", "1", "--xid", "79")
    node.wait_for(capacity=2, allocatable=1)


@pytest.mark.parametrize("how", ["lost", "reset-required"])
def test_a_broken_gpu_does_not_hide_the_others(node, how):
    node.up("dgx-h100", "--gpus", "4")
    node.sim("gpu", "--gpu", "1", "--state", how)
    node.start_kubelet()
    plugin = node.start_plugin()
    node.wait_for(allocatable=3)
    others = {gpu["uuid"] for gpu in node.gpus() if gpu["gpu"] != 1}
    assert {d["id"] for d in node.resources()[GPU]["devices"] if d["health"] == "Healthy"} == others
    eventually(lambda: "lost" in str(plugin.status()) or "reset" in str(plugin.status()), "the status says why")


def test_a_gpu_whose_uuid_cannot_be_read_is_told_and_the_others_are_offered(node):
    node.up("dgx-h100", "--gpus", "3")
    node.sim("function", "--gpu", "0", "--function", "nvmlDeviceGetUUID", "--error", "999")
    node.start_kubelet()
    plugin = node.start_plugin("--rescan-interval=100ms")
    node.wait_for(capacity=2, allocatable=2)
    assert "nvmlDeviceGetUUID" in plugin.status()["unreadableGpus"][0]["reason"]
    node.sim("function", "--gpu", "0", "--function", "nvmlDeviceGetUUID", "--ok")
    node.wait_for(capacity=3, allocatable=3)


def test_a_hanging_gpu_holds_nobody_up_and_comes_in_when_it_answers(node):
    node.up("dgx-h100", "--gpus", "4")
    node.sim("gpu", "--gpu", "3", "--state", "hung")
    node.start_kubelet()
    plugin = node.start_plugin()
    node.wait_for(allocatable=3)
    assert plugin.get("/readyz")[0] == 200 and plugin.get("/livez")[0] == 200
    node.allocate(2)
    node.sim("gpu", "--gpu", "3", "--state", "ok")
    node.wait_for(capacity=4, allocatable=4)


def test_slow_link_queries_hold_nobody_up(node):
    node.up("dgx-h100", "--gpus", "8")
    for function in ("nvmlDeviceGetNvLinkState", "nvmlDeviceGetNvLinkRemotePciInfo_v2",
                     "nvmlDeviceGetTopologyCommonAncestor"):
        node.sim("function", "--function", function, "--latency", "600ms")
    node.start_kubelet()
    plugin = node.start_plugin()
    node.wait_for(capacity=8, allocatable=8)
    assert len(node.do("preferred", resource=GPU, count=4)["devices"]) == 4
    assert plugin.status()["driver"]["linksRead"] is False
    # A stop does not wait for them either.
    assert plugin.stop(10) == 0


def test_numa_nodes_that_are_not_told_are_left_out(node):
    node.up("dgx-h100", "--gpus", "3")
    devices = sorted((node.dir / "root/sys/bus/pci/devices").iterdir())
    (devices[0] / "numa_node").write_text("-1\n")
    (devices[1] / "numa_node").unlink()
    node.start_kubelet()
    node.start_plugin()
    node.wait_for(allocatable=3)
    assert sorted(d.get("numa", "none") == "none" for d in node.resources()[GPU]["devices"]) == [False, True, True]


def test_rescans_do_not_begin_the_link_queries_anew(node):
    """Of a host where they take longer than the rescan interval."""
    node.up("dgx-h100", "--gpus", "3")
    node.sim("function", "--function", "nvmlDeviceGetTopologyCommonAncestor", "--latency", "400ms")
    node.start_kubelet()
    plugin = node.start_plugin("--rescan-interval=50ms")
    node.wait_for(capacity=3, allocatable=3)
    eventually(lambda: plugin.status()["driver"]["linksRead"], "the links are read")
    assert node.calls()["nvmlDeviceGetTopologyCommonAncestor"] == 3
