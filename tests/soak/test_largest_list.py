"""The largest device list that the kubelet takes (4 MiB) really reaches it."""

import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "integration"))

from simnode import GPU, LIMIT_S, eventually, node  # noqa: E402, F401


def test_the_largest_list_that_fits_reaches_the_kubelet_and_the_next_one_is_refused(node):  # noqa: F811
    def start(replicas):
        sharing = {"timeSlicing": {"resources": [{"name": GPU, "replicas": replicas}]}}
        return node.start_plugin(config={"sharing": sharing})

    def until(**wanted):
        # Megabytes at each step: slow on a busy machine, so more patience than elsewhere.
        eventually(lambda: node.ask("wait", resource=GPU, timeout_ms=10_000, **wanted)["ok"], f"{wanted}", 120)

    node.up("dgx-h100", "--gpus", "2")
    node.start_kubelet()
    plugin = start(90_000)
    assert plugin.process.wait(LIMIT_S) == 1
    most = int(plugin.log().split("want at most ")[1].split()[0])
    plugin = start(most + 1)
    assert plugin.process.wait(LIMIT_S) == 1
    said = plugin.log().splitlines()[-1]
    size = int(re.search(r"(\d+) bytes", said)[1])
    assert f"{most + 1} replicas" in said and "4194304" in said and f"want at most {most}" in said
    one_of_each = 2 * 71  # an entry takes 66 to 71 bytes
    assert 4194304 < size <= 4194304 + one_of_each

    plugin = start(most)
    until(capacity=2 * most, allocatable=2 * most)
    for gpu in range(2):  # a list is longest when all are Unhealthy
        node.sim("gpu", "--gpu", str(gpu), "--state", "lost")
    until(capacity=2 * most, allocatable=0)
    assert plugin.status()["resources"][0]["registration"]["registered"]
