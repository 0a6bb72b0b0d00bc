"""MIG strategies over nodes whose GPUs differ: what is offered, under which name, and why not."""

import pytest
from simnode import GPU, eventually


def mig(node, gpu):
    return node.gpus()[gpu]["mig"]


def why_not(plugin, index):
    return {d["index"]: d["reason"] for d in plugin.status()["notOffered"]}[index]


def start(node, strategy, *args):
    node.start_kubelet()
    return node.start_plugin(f"--mig-strategy={strategy}", *args)


def test_none_offers_gpus_whole_whether_in_mig_mode_or_not(node):
    node.up("dgx-a100", "--gpus", "2")
    node.partition(0, "1g.5gb*7")
    start(node, "none")
    node.wait_for(GPU, capacity=2, allocatable=2)
    assert list(node.resources()) == [GPU]
    assert node.allocate(2)["devices"] == sorted(gpu["uuid"] for gpu in node.gpus())


def test_mixed_gives_each_profile_its_own_resource(node):
    """Full GPUs, an empty MIG GPU, slots with gaps, instances that share one, media extensions."""
    node.up("dgx-h100", "--gpus", "5")
    node.partition(0, "1g.10gb*2,-,3g.40gb,-")
    node.partition(1, "1c.2g.20gb*2,2g.20gb")
    node.partition(2, "1g.10gb+me,1g.20gb*2")
    node.partition(3, "")
    plugin = start(node, "mixed")
    for resource, count in {GPU: 1, "nvidia.com/mig-1g.10gb": 2, "nvidia.com/mig-3g.40gb": 1,
                            "nvidia.com/mig-1c.2g.20gb": 2, "nvidia.com/mig-2g.20gb": 1,
                            "nvidia.com/mig-1g.10gb.me": 1, "nvidia.com/mig-1g.20gb": 2}.items():  # fmt: skip
        node.wait_for(resource, capacity=count, allocatable=count)
    assert len(node.resources()) == 7
    assert "MIG" in why_not(plugin, "3")
    assert 'ndp_not_offered 1' in plugin.get("/metrics")[1]
    assert any("not offered" in line and "index=3" in line for line in plugin.log().splitlines())
    # A MIG device is on its parent's NUMA node; node 0 is there as a node.
    for device in node.resources()["nvidia.com/mig-1g.10gb"]["devices"]:
        assert device["numa"] == [0]


def test_a_mig_devices_nodes_are_its_parents_and_two_capabilities(node):
    node.up("dgx-h100", "--gpus", "3")
    node.partition(2, "1g.10gb*7")
    node.sim("gpu", "--order", "2,1,0")  # the caps go by the minor, the index by the enumeration
    start(node, "mixed", "--pass-device-specs", "--device-id-strategy=index")
    resource = "nvidia.com/mig-1g.10gb"
    node.wait_for(resource, capacity=7, allocatable=7)
    devices = mig(node, 2)
    answer = node.do("raw-allocate", resource=resource, devices=[devices[4]["uuid"], devices[1]["uuid"]])["response"]
    assert answer["envs"]["NVIDIA_VISIBLE_DEVICES"] == "0:1,0:4"
    paths = {d["containerPath"] for d in answer["devices"]}
    minors = dict(line.split() for line in
                  (node.dir / "root/proc/driver/nvidia-caps/mig-minors").read_text().splitlines())
    for device in (devices[1], devices[4]):
        gi, ci = device["gi"], device["ci"]
        assert f"/dev/nvidia-caps/nvidia-cap{minors[f'gpu2/gi{gi}/access']}" in paths
        assert f"/dev/nvidia-caps/nvidia-cap{minors[f'gpu2/gi{gi}/ci{ci}/access']}" in paths
    assert "/dev/nvidia2" in paths and "/dev/nvidia0" not in paths


@pytest.mark.parametrize("of", ["GPU instance", "compute instance"])
def test_a_missing_minors_entry_disables_that_device_alone(node, of):
    node.up("dgx-h100", "--gpus", "1")
    node.partition(0, "1g.10gb*7")
    lost = mig(node, 0)[3]
    instance = f"gpu0/gi{lost['gi']}"
    entry = f"{instance}/access" if of == "GPU instance" else f"{instance}/ci{lost['ci']}/access"
    minors = node.dir / "root/proc/driver/nvidia-caps/mig-minors"
    minors.write_text("".join(line for line in minors.read_text().splitlines(True) if not line.startswith(entry)))
    plugin = start(node, "mixed")
    resource = "nvidia.com/mig-1g.10gb"
    node.wait_for(resource, capacity=7, allocatable=6)
    device = plugin.device(lost["uuid"], resource)
    assert device["health"] == "Unhealthy" and entry in device["reason"]


WRONG_LAYOUTS = {
    "two profiles": (["1g.10gb*7", "3g.40gb*2"], ["1g.10gb", "3g.40gb"]),
    "an empty MIG GPU": (["1g.10gb*7", ""], ["1g.10gb", "without MIG devices"]),
    "a GPU without MIG": (["1g.10gb*7", None], ["1g.10gb", "no MIG on GPU 1"]),
    "two profiles on each": (["1g.10gb,2g.20gb", "1g.10gb,2g.20gb"], ["1g.10gb,2g.20gb"]),
}


@pytest.mark.parametrize("layout", WRONG_LAYOUTS)
def test_single_offers_nothing_of_a_wrong_layout_says_why_and_goes_on(node, layout):
    profiles, words = WRONG_LAYOUTS[layout]
    node.up("dgx-h100", "--gpus", "2")
    for gpu, wanted in enumerate(profiles):
        if wanted is not None:
            node.partition(gpu, wanted)
    plugin = start(node, "single", "--rescan-interval=100ms")
    eventually(lambda: plugin.get("/readyz")[0] == 200, "ready all the same")
    reasons = [d.get("reason", "") for r in plugin.status()["resources"] for d in r["devices"]]
    reasons += [d["reason"] for d in plugin.status()["notOffered"]]
    assert reasons and all(any(word in reason for reason in reasons) for word in words), reasons
    told = node.ndp("health")
    assert all(word in told for word in words), told
    warned = [line for line in plugin.log().splitlines() if " W " in line]
    assert all(any(word in line for line in warned) for word in words), warned
    assert node.resources().get(GPU, {"allocatable": 0})["allocatable"] == 0
    healthy = [line for line in plugin.get("/metrics")[1].splitlines() if line.startswith("ndp_devices_healthy{")]
    assert all(line.endswith(" 0") for line in healthy)
    if None in profiles:  # its mode cannot change while it is in use
        return
    for gpu in range(2):
        node.sim("mig", "--gpu", str(gpu), "--profiles", "2g.20gb*3")
    node.wait_for(GPU, allocatable=6)
    assert len(node.allocate(1)["response"]["envs"]["NVIDIA_VISIBLE_DEVICES"].split(",")) == 1


def test_single_serves_the_majority_where_that_is_asked_for(node):
    node.up("dgx-h100", "--gpus", "3")
    node.partition(0, "1g.10gb*7")
    node.partition(1, "3g.40gb*2")
    node.partition(2, "3g.40gb*2")
    plugin = start(node, "single", "--mig-single-partial=majority", "--rescan-interval=100ms")
    node.wait_for(GPU, allocatable=4)
    assert "majority" in plugin.device(mig(node, 0)[0]["uuid"])["reason"]


def test_mig_that_may_not_be_asked_for_harms_no_other_gpu(node):
    node.up("dgx-h100", "--gpus", "2")
    node.sim("mig", "--gpu", "1", "--permission", "off")
    plugin = start(node, "mixed")
    node.wait_for(GPU, allocatable=1)
    eventually(lambda: "permission" in str(plugin.status()).lower(), "the reason is told")
