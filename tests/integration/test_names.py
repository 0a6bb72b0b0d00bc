"""Names by pattern, and which GPUs exist for us at all."""

import pytest
from simnode import GPU, eventually

NAMES = {"resources": {"gpus": [{"pattern": "*T4*", "name": "t4"}, {"pattern": "*A100*", "name": "a100"}]}}


def start(node, config, *args, profile="mixed"):
    node.up(profile)
    node.start_kubelet()
    return node.start_plugin(*args, config=config)


def test_each_model_has_its_own_resource(node):
    start(node, NAMES, "--enable-resource-naming")
    node.wait_for("nvidia.com/t4", capacity=2, allocatable=2)
    node.wait_for("nvidia.com/a100", capacity=2, allocatable=2)
    assert GPU not in node.resources()
    node.allocate(2, "nvidia.com/a100")


def test_the_first_match_wins_and_the_rest_keeps_its_name(node):
    rules = {"resources": {"gpus": [{"pattern": "Tesla*", "name": "small"}, {"pattern": "*T4", "name": "t4"}]}}
    start(node, rules, "--enable-resource-naming")
    node.wait_for("nvidia.com/small", capacity=2, allocatable=2)
    node.wait_for(GPU, capacity=2, allocatable=2)
    assert "nvidia.com/t4" not in node.resources()


def test_without_the_switch_nothing_is_renamed_and_one_warning_says_so(node):
    plugin = start(node, NAMES)
    node.wait_for(GPU, capacity=4, allocatable=4)
    warnings = [line for line in plugin.log().splitlines() if " W " in line and "--enable-resource-naming" in line]
    assert len(warnings) == 1 and "*T4*" in warnings[0] and "nvidia.com/a100" in warnings[0]


def test_mig_profiles_have_names_too(node):
    node.up("dgx-h100", "--gpus", "1")
    node.partition(0, "1g.10gb*2,3g.40gb")
    node.start_kubelet()
    node.start_plugin("--mig-strategy=mixed", "--enable-resource-naming",
                      config={"resources": {"mig": [{"pattern": "1g.*", "name": "mig-small"}]}})
    node.wait_for("nvidia.com/mig-small", capacity=2, allocatable=2)
    node.wait_for("nvidia.com/mig-3g.40gb", capacity=1, allocatable=1)


def test_what_a_pod_holds_is_not_handed_out_under_its_new_name(node):
    plugin = start(node, {}, "--enable-resource-naming")
    node.wait_for(GPU, capacity=4, allocatable=4)
    held = set(node.allocate(3, pod="old")["devices"])
    node.write_config(NAMES)
    node.wait_for("nvidia.com/t4", capacity=2)
    node.wait_for("nvidia.com/a100", capacity=2)
    node.wait_for(GPU, allocatable=0)
    healthy = {d["id"] for name in ("nvidia.com/t4", "nvidia.com/a100")
               for d in node.resources()[name]["devices"] if d["health"] == "Healthy"}
    assert len(healthy) == 1 and not healthy & held
    assert held <= {d["id"] for d in node.resources()[GPU]["devices"]}
    assert any("pod holds it as nvidia.com/gpu" in d.get("reason", "")
               for r in plugin.status()["resources"] for d in r["devices"])
    node.do("release", pod="old")
    node.wait_for("nvidia.com/t4", allocatable=2)
    node.wait_for("nvidia.com/a100", allocatable=2)


@pytest.mark.long
def test_what_an_ended_pod_held_is_free_before_another_pod_asks(node):
    """By the pod resources API: the checkpoint alone is too long until a pod asks for a device."""
    plugin = start(node, {}, "--enable-resource-naming")
    node.wait_for(GPU, capacity=4, allocatable=4)
    held = set(node.allocate(3, pod="old")["devices"])
    node.write_config(NAMES)
    # Every list is in: each makes the kubelet write its checkpoint.
    free = {"nvidia.com/t4": 2, "nvidia.com/a100": 2}
    for gpu in node.gpus():
        if gpu["uuid"] in held:
            free["nvidia.com/t4" if "T4" in gpu["name"] else "nvidia.com/a100"] -= 1
    for name, count in free.items():
        node.wait_for(name, capacity=2, allocatable=count)
    node.wait_for(GPU, capacity=3, allocatable=0)
    node.do("release", pod="old", keep_checkpoint=True)
    node.wait_for("nvidia.com/t4", allocatable=2)
    node.wait_for("nvidia.com/a100", allocatable=2)
    assert "the kubelet cannot be asked" not in plugin.log()


SELECTORS = {
    "index": ([0], 3),
    "pattern": (["*T4*"], 2),
    "bus id": (["0000:3b:00.0", "00000000:3C:00.0"], 2),
    "memory": ([{"minMemory": "20Gi"}], 2),
    "both of a map": ([{"name": "*A100*", "index": 2}], 3),
}


@pytest.mark.parametrize("kind", SELECTORS)
def test_excluded_gpus_are_not_offered_watched_or_counted(node, kind):
    selectors, left = SELECTORS[kind]
    plugin = start(node, {"devices": {"exclude": selectors}})
    node.wait_for(GPU, capacity=left, allocatable=left)
    excluded = plugin.status()["notOffered"]
    assert len(excluded) == 4 - left
    assert all("devices.exclude[" in e["reason"] and "line" in e["reason"] for e in excluded)
    offered = {d["id"] for d in node.resources()[GPU]["devices"]}
    assert not offered & {e["uuid"] for e in excluded}
    assert plugin.metric("ndp_devices", resource=GPU) == left
    assert not {e["uuid"] for e in excluded} & set(plugin.verdicts()), "nobody looks at them"


def test_only_what_is_included_exists(node):
    node.up("mixed")
    node.start_kubelet()
    chosen, left_out = node.gpus()[3]["uuid"], node.gpus()[2]["uuid"]
    plugin = node.start_plugin(config={"devices": {"include": [chosen, 0]}})
    node.wait_for(GPU, capacity=2, allocatable=2)
    assert chosen in {d["id"] for d in node.resources()[GPU]["devices"]}
    # A fault of one that does not exist for us is nobody's business.
    node.sim("fault", "--gpu", "2", "--xid", "79")
    node.sim("fault", "--gpu", "0", "--xid", "79")
    node.wait_for(GPU, capacity=2, allocatable=1)
    assert not any(left_out in line for line in plugin.log().splitlines() if "not offered" not in line)


def test_a_selector_that_matches_nothing_is_a_warning_with_what_there_is(node):
    plugin = start(node, {"devices": {"exclude": ["*H100*", 7]}})
    node.wait_for(GPU, capacity=4, allocatable=4)
    for wanted in ("devices.exclude[0]", "devices.exclude[1]"):
        line = next(line for line in plugin.log().splitlines() if wanted in line and " W " in line)
        assert "line" in line and "Tesla T4" in line and node.gpus()[3]["uuid"] in line
    assert any("devices.exclude[1]" in warning for warning in plugin.status()["warnings"])


def test_where_nothing_is_left_nothing_is_offered_and_that_is_told(node):
    plugin = start(node, {"devices": {"include": ["*H100*"]}})
    eventually(lambda: plugin.get("/readyz")[0] == 200, "ready: there is nothing to register")
    assert GPU not in node.resources() and len(plugin.status()["notOffered"]) == 4
    node.write_config({"devices": {"include": ["*A100*"]}})
    node.wait_for(GPU, capacity=2, allocatable=2)


@pytest.mark.long
def test_an_excluded_gpu_stays_while_a_pod_holds_it(node):
    plugin = start(node, {})
    node.wait_for(GPU, capacity=4, allocatable=4)
    held = node.allocate(4, pod="all")["devices"]
    node.write_config({"devices": {"exclude": [1]}})
    node.wait_for(GPU, capacity=4, allocatable=3)
    excluded = node.gpus()[1]["uuid"]
    assert excluded in held and "pod holds it" in plugin.device(excluded)["reason"]
    node.do("release", pod="all")
    eventually(lambda: node.resources()[GPU]["capacity"] == 3, "it leaves when it is let go", 40)
    node.wait_for(GPU, capacity=3, allocatable=3)
