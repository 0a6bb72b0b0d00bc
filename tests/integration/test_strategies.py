"""What Allocate answers under each way to hand devices to a runtime."""

import pytest
from simnode import GPU, eventually

FOLDER = "/var/run/nvidia-container-devices"
LISTS = [("envvar",), ("volume-mounts",), ("cdi-cri",), ("cdi-annotations",), ("envvar", "volume-mounts"),
         ("envvar", "cdi-annotations", "cdi-cri")]


@pytest.mark.parametrize("how", ["uuid", "index"])
def test_each_list_strategy_with_either_name_of_a_device(node, how):
    """One plugin after another on one machine; ids in any order and repeated."""
    node.up("dgx-h100", "--gpus", "4")
    node.start_kubelet()
    uuids = [gpu["uuid"] for gpu in node.gpus()]
    for number, lists in enumerate(LISTS):
        specs = (number % 2 == 0) == (how == "uuid")  # with and without, each under one of the names
        plugin = node.start_plugin(f"--device-list-strategy={','.join(lists)}", f"--device-id-strategy={how}",
                                   f"--pass-device-specs={str(specs).lower()}", name=f"p{number}")
        eventually(lambda: plugin.get("/readyz")[0] == 200, f"{lists} serves")  # noqa: B023
        node.wait_for(allocatable=4)
        names = [uuids[1], uuids[3]] if how == "uuid" else ["1", "3"]
        answer = node.do("raw-allocate", resource=GPU, devices=[uuids[3], uuids[1], uuids[3]])["response"]
        plain = {"envvar", "volume-mounts"} & set(lists)
        visible = FOLDER if "volume-mounts" in lists else ",".join(names) if "envvar" in lists else None
        assert answer.get("envs", {}).get("NVIDIA_VISIBLE_DEVICES") == visible, lists
        mounts = [m["containerPath"] for m in answer.get("mounts", [])]
        assert mounts == ([f"{FOLDER}/{n}" for n in names] if "volume-mounts" in lists else []), lists
        nodes = [d["containerPath"] for d in answer.get("devices", [])]
        if specs and plain:
            assert nodes[:2] == ["/dev/nvidia1", "/dev/nvidia3"] and "/dev/nvidiactl" in nodes
            assert {d["permissions"] for d in answer["devices"]} == {"rw"}
        else:
            assert nodes == [], lists
        cdi = [f"k8s.device-plugin.nvidia.com/gpu={n}" for n in names]
        assert [d["name"] if isinstance(d, dict) else d for d in answer.get("cdiDevices", [])] == (
            cdi if "cdi-cri" in lists else []), lists
        annotations = list(answer.get("annotations", {}).items())
        assert (len(annotations) == 1) == ("cdi-annotations" in lists), lists
        if annotations:
            assert annotations[0][0].startswith("cdi.k8s.io/") and annotations[0][1] == ",".join(cdi)
        assert plugin.stop() == 0


def test_switches_reach_the_container(node):
    node.up("dgx-h100", "--gpus", "1")
    node.start_kubelet()
    node.start_plugin("--gdrcopy-enabled", "--gds-enabled", "--mofed-enabled")
    node.wait_for(allocatable=1)
    envs = node.allocate(1)["response"]["envs"]
    assert {k: v for k, v in envs.items() if v == "enabled"} == {
        "NVIDIA_GDRCOPY": "enabled", "NVIDIA_GDS": "enabled", "NVIDIA_MOFED": "enabled"}


def test_host_paths_are_under_the_dev_root(node):
    node.up("dgx-h100", "--gpus", "1")
    node.start_kubelet()
    node.start_plugin("--pass-device-specs", "--driver-root=/run/nvidia/driver")
    node.wait_for(allocatable=1)
    device = node.allocate(1)["response"]["devices"][0]
    assert device["hostPath"] == "/run/nvidia/driver/dev/nvidia0" and device["containerPath"] == "/dev/nvidia0"


def test_under_the_index_strategy_devices_wait_while_the_enumeration_has_changed(node):
    """A GPU goes and the ones behind it move up: until they have been read nothing is handed out by index."""
    node.up("dgx-h100", "--gpus", "4")
    node.start_kubelet()
    plugin = node.start_plugin("--device-id-strategy=index", "--rescan-interval=200ms")
    node.wait_for(capacity=4, allocatable=4)
    # What was GPU 1 is read slowly, so that the rescan takes a while.
    node.sim("function", "--gpu", "1", "--function", "nvmlDeviceGetUUID", "--latency", "1500ms")
    node.sim("gpu", "--gpu", "0", "--remove")
    node.wait_for(capacity=4, allocatable=0)
    node.wait_for(capacity=4, allocatable=3)
    log = plugin.log()  # not only once the old session has closed, which takes as long as a wait for events
    assert log.index("enumeration has changed") < log.rindex("driver session opened")
    uuids = [gpu["uuid"] for gpu in node.gpus()]
    answer = node.do("raw-allocate", resource=GPU, devices=[uuids[3], uuids[1]])["response"]
    assert answer["envs"]["NVIDIA_VISIBLE_DEVICES"] == "0,2"


def test_under_the_uuid_strategy_nobody_is_disturbed_by_another_order(node):
    node.up("dgx-h100", "--gpus", "4")
    node.start_kubelet()
    plugin = node.start_plugin("--rescan-interval=100ms")
    node.wait_for(capacity=4, allocatable=4)
    node.sim("gpu", "--order", "3,2,1,0")
    plugin.signal(1)
    eventually(lambda: plugin.status()["gpus"][0]["minor"] == 3, "the new order is seen")
    assert node.resources()[GPU]["allocatable"] == 4
    assert {frozenset(d["id"] for d in e["devices"] if d["health"] == "Healthy") for e in node.events("list")} == {
        frozenset(gpu["uuid"] for gpu in node.gpus())}


def test_a_gpu_without_node_is_held_back_before_the_session_is_closed(node):
    node.up("dgx-h100", "--gpus", "4")
    node.start_kubelet()
    plugin = node.start_plugin("--device-list-strategy=cdi-cri", f"--driver-root={node.dir / 'root'}", "--rescan-interval=1h")
    node.wait_for(capacity=4, allocatable=4)
    node.await_events()
    node.remove_device("/dev/nvidia1")
    node.wait_for(capacity=4, allocatable=3)
    assert node.unhealthy() == {node.uuid(1)}
    eventually(lambda: plugin.log().count("driver session opened") == 2, "it is refreshed")
    log = plugin.log()
    assert log.index("/dev/nvidia1") < log.rindex("driver session opened")
