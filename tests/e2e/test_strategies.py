"""Every device-list strategy: a container sees what its runtime was told, and nothing else."""

import pytest
from container import Added
from driver import check_driver
from simnode import GPU

LIST_FOLDER = "/var/run/nvidia-container-devices"
STRATEGIES = [
    ["envvar"],
    ["volume-mounts"],
    ["cdi-annotations"],
    ["cdi-cri"],
    ["cdi-annotations", "cdi-cri"],
    ["envvar", "cdi-cri"],
    ["volume-mounts", "cdi-annotations"],
    ["envvar", "volume-mounts", "cdi-annotations", "cdi-cri"],
]


def check_listed(node, added: Added, strategies: list[str], ids: list[str]) -> None:
    """What tells NVIDIA's own runtime which devices to inject."""
    cdi = any(strategy.startswith("cdi-") for strategy in strategies)
    if cdi:
        # A name beats the ids, so that NVIDIA's runtime does not inject the GPUs once more.
        assert added.env == {"NVIDIA_VISIBLE_DEVICES": "void",
                             "NVIDIA_CTK_LIBCUDA_DIR": node.driver.inside(node.driver.libraries)}
    elif "volume-mounts" in strategies:
        assert added.env == {"NVIDIA_VISIBLE_DEVICES": LIST_FOLDER}
    else:
        assert added.env == {"NVIDIA_VISIBLE_DEVICES": ",".join(ids)}
    listed = {f"{LIST_FOLDER}/{id}" for id in ids} if "volume-mounts" in strategies else set()
    driver = node.driver.mounts() if cdi else {}
    assert set(added.mounts) == listed | set(driver)
    for path in listed:
        assert added.mounts[path] == "/null"
    for path, source in driver.items():
        assert added.mounts[path].endswith(f"/root{source}"), path


@pytest.mark.parametrize("strategies", STRATEGIES, ids="+".join)
def test_a_strategy_gives_what_it_says_and_nothing_else(node, plain, strategies):
    node.plugin(f"--device-list-strategy={','.join(strategies)}")
    pod = node.pod("-".join(strategies), {GPU: 2}).running()
    gpus = node.held(pod)
    assert len(gpus) == 2
    added = Added(pod.view(), plain)
    check_listed(node, added, strategies, [gpu["uuid"] for gpu in gpus])
    if any(strategy.startswith("cdi-") for strategy in strategies):
        nodes = node.driver.gpu_nodes(gpus[0]) | node.driver.gpu_nodes(gpus[1])
        check_driver(node.driver, added, nodes, gpus)
    else:
        assert added.nodes == {}
        assert added.links == {}
        assert added.files == set()
