"""Every profile that a GPU can have gets the name that users know, and the resource that goes with it."""

import pytest
from simnode import GPU, eventually

# Machine: (layout of each GPU, the resources of the whole).
MACHINES = {
    "a30": (["1g.6gb*2,2g.12gb", "1g.6gb+me", "2g.12gb+me", "4g.24gb"],
            {"1g.6gb": 2, "2g.12gb": 1, "1g.6gb.me": 1, "2g.12gb.me": 1, "4g.24gb": 1}),
    "dgx-a100": (["1g.5gb*2,1g.10gb,2g.10gb", "1g.5gb+me,3g.20gb", "4g.20gb", "7g.40gb", "1c.3g.20gb*2,2c.4g.20gb"],
                 {"1g.5gb": 2, "1g.10gb": 1, "2g.10gb": 1, "1g.5gb.me": 1, "3g.20gb": 1, "4g.20gb": 1, "7g.40gb": 1,
                  "1c.3g.20gb": 2, "2c.4g.20gb": 1}),
    "dgx-a100-80": (["1g.10gb,1g.20gb,2g.20gb", "1g.10gb+me,3g.40gb", "4g.40gb", "7g.80gb"],
                    {"1g.10gb": 1, "1g.20gb": 1, "2g.20gb": 1, "1g.10gb.me": 1, "3g.40gb": 1, "4g.40gb": 1,
                     "7g.80gb": 1}),
    "dgx-h100": (["1g.10gb,1g.20gb,2g.20gb", "1g.10gb+me,3g.40gb", "4g.40gb", "7g.80gb"],
                 {"1g.10gb": 1, "1g.20gb": 1, "2g.20gb": 1, "1g.10gb.me": 1, "3g.40gb": 1, "4g.40gb": 1, "7g.80gb": 1}),
    "dgx-h200": (["1g.18gb,1g.35gb,2g.35gb", "1g.18gb+me,3g.71gb", "4g.71gb", "7g.141gb"],
                 {"1g.18gb": 1, "1g.35gb": 1, "2g.35gb": 1, "1g.18gb.me": 1, "3g.71gb": 1, "4g.71gb": 1,
                  "7g.141gb": 1}),
    "dgx-b200": (["1g.23gb,1g.45gb,2g.45gb", "1g.23gb+me,3g.90gb", "4g.90gb", "7g.180gb"],
                 {"1g.23gb": 1, "1g.45gb": 1, "2g.45gb": 1, "1g.23gb.me": 1, "3g.90gb": 1, "4g.90gb": 1,
                  "7g.180gb": 1}),
    "rtx-pro-6000": (["1g.24gb,1g.24gb+gfx,2g.48gb", "1g.24gb+me,1g.24gb-me,2g.48gb-me", "1g.24gb+me.all,2g.48gb+gfx",
                      "2g.48gb+me.all", "4g.96gb", "4g.96gb+gfx"],
                     {"1g.24gb": 1, "1g.24gb.gfx": 1, "2g.48gb": 1, "1g.24gb.me": 1, "1g.24gb-me": 1, "2g.48gb-me": 1,
                      "1g.24gb.me.all": 1, "2g.48gb.gfx": 1, "2g.48gb.me.all": 1, "4g.96gb": 1, "4g.96gb.gfx": 1}),
}  # fmt: skip


@pytest.mark.parametrize("machine", MACHINES)
def test_names(node, machine):
    layouts, wanted = MACHINES[machine]
    node.up(machine)
    count = len(node.gpus())
    for first in range(0, len(layouts), count):  # on one machine after another where it has too few
        if first:
            node.plugins[-1].stop()
            node.do("restart", lose_checkpoint=True)
        for gpu in range(count):
            node.partition(gpu, layouts[first + gpu] if first + gpu < len(layouts) else "")
        if not first:
            node.start_kubelet()
        plugin = node.start_plugin("--mig-strategy=mixed")
        eventually(lambda: plugin.get("/readyz")[0] == 200, "registered")  # noqa: B023
        for resource in plugin.status()["resources"]:
            name = resource["name"].removeprefix("nvidia.com/mig-")
            if resource["name"] == GPU:
                continue
            assert resource["healthy"] == wanted.pop(name), resource
            node.wait_for(resource["name"], allocatable=resource["healthy"])
    assert not wanted, "these were never offered"


def test_a_pending_mode_is_told_and_changes_nothing_yet(node):
    node.up("dgx-h100", "--gpus", "2")
    node.sim("mig", "--gpu", "0", "--pending", "on")
    node.start_kubelet()
    plugin = node.start_plugin("--mig-strategy=mixed")
    node.wait_for(GPU, capacity=2, allocatable=2)
    gpu = plugin.status()["gpus"][0]
    assert (gpu["mig"], gpu["migPending"]) == ("disabled", "enabled")
