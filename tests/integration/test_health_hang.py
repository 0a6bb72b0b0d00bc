"""A call of the driver that does not return costs its GPU, never the plugin."""

import time

import pytest
from simnode import GPU, eventually, quick


def hang(node, *gpus):
    for gpu in gpus:
        node.sim("function", "--function", "nvmlDeviceGetMemoryInfo", "--hang", "--gpu", str(gpu))


def best_allocate_ms(node, ids):
    best = float("inf")
    for _ in range(30):
        began = time.monotonic()
        node.do("raw-allocate", resource=GPU, devices=ids)
        best = min(best, time.monotonic() - began)
    return best * 1000


def test_one_hanging_gpu(node):
    plugin = node.serve(config=quick(watchdog="2s"))
    node.await_events()
    others = [node.uuid(gpu) for gpu in (0, 1)]
    before = best_allocate_ms(node, others)
    hang(node, 4)
    # While it hangs and nobody knows: Allocate is as fast, and the others are polled on.
    assert best_allocate_ms(node, others) < before + 250  # not the seconds that the call is out for
    node.sim("set", "--gpu", "6", "--remap-failure", "1")
    plugin.until_unhealthy(node.uuid(6), "row remapping failed")
    verdict = plugin.until_unhealthy(node.uuid(4), "does not return")
    assert verdict["class"] == "hang"
    node.wait_for(capacity=8, allocatable=6)
    assert best_allocate_ms(node, others) < before + 250  # not the seconds that the call is out for
    assert plugin.get("/livez")[0] == 200 and plugin.get("/readyz")[0] == 200
    # Nothing more is asked of it; the others go on.
    node.sim("set", "--gpu", "7", "--remap-failure", "1")
    plugin.until_unhealthy(node.uuid(7), "row remapping failed")
    threads = len(list((node.dir / f"/proc/{plugin.process.pid}/task").iterdir()))
    assert threads < 24
    node.sim("function", "--function", "nvmlDeviceGetMemoryInfo", "--ok", "--gpu", "4")
    plugin.until_healthy(node.uuid(4))
    node.wait_for(capacity=8, allocatable=6)


@pytest.mark.parametrize("known", [False, True])
def test_all_hung_the_plugin_lives_and_stops_at_once(node, known):
    plugin = node.serve(config=quick(watchdog="1s" if known else "1h"))
    node.await_events()
    polled = node.calls()["nvmlDeviceGetMemoryInfo"]
    hang(node, *range(8))
    eventually(lambda: node.calls()["nvmlDeviceGetMemoryInfo"] >= polled + 8, "all hang")
    if known:
        node.wait_for(capacity=8, allocatable=0)
    assert plugin.get("/livez")[0] == 200 and plugin.get("/readyz")[0] == 200
    assert node.do("raw-allocate", resource=GPU, devices=[node.uuid(0)])["response"]["envs"]
    began = time.monotonic()
    assert plugin.stop() == 0
    assert time.monotonic() - began < 2
    assert not list(node.kubelet_dir.glob("nvidia-*.sock"))


def test_a_driver_that_hangs_at_start(node):
    node.up()
    node.sim("function", "--function", "nvmlInit_v2", "--hang")
    node.start_kubelet()
    plugin = node.start_plugin("--fail-on-init-error=false", config=quick())
    eventually(lambda: plugin.get("/livez")[0] == 200, "alive")
    eventually(lambda: "does not return" in plugin.status()["driver"].get("error", ""), "said")
    node.sim("function", "--function", "nvmlInit_v2", "--ok")
    node.wait_for(capacity=8, allocatable=8)


def test_a_count_that_hangs_at_start_is_said_and_holds_no_rollout_up(node):
    node.up()
    node.sim("function", "--function", "nvmlDeviceGetCount_v2", "--hang")
    node.start_kubelet()
    plugin = node.start_plugin("--fail-on-init-error=false", config=quick())
    eventually(lambda: "does not return" in plugin.status()["driver"].get("error", ""), "said")
    assert plugin.get("/livez")[0] == 200
    eventually(lambda: plugin.get("/readyz")[0] == 200, "ready")
    node.sim("function", "--function", "nvmlDeviceGetCount_v2", "--ok")
    node.wait_for(capacity=8, allocatable=8)
    assert "error" not in plugin.status()["driver"]


def test_a_count_that_hangs_in_a_new_session_offers_nothing_until_it_returns(node):
    plugin = node.serve(config=quick())
    node.await_events()
    node.sim("function", "--function", "nvmlDeviceGetCount_v2", "--hang")
    plugin.signal(1)
    node.wait_for(capacity=8, allocatable=0)
    assert "does not return" in plugin.status()["health"]["driver"]["reason"]
    assert plugin.get("/livez")[0] == 200 and plugin.get("/readyz")[0] == 200
    node.sim("function", "--function", "nvmlDeviceGetCount_v2", "--ok")
    node.wait_for(capacity=8, allocatable=8)


@pytest.mark.long
@pytest.mark.parametrize("function", ["nvmlDeviceRegisterEvents", "nvmlEventSetWait_v2"])
def test_events_that_cannot_be_watched_for_a_hang_are_told_once_and_polls_go_on(node, function):
    node.up()
    node.sim("function", "--function", function, "--hang")
    node.start_kubelet()
    plugin = node.start_plugin(config=quick())
    node.wait_for(capacity=8, allocatable=8)
    words = "events of GPUs cannot be watched"
    eventually(lambda: words in plugin.log(), "said")
    node.sim("set", "--gpu", "6", "--remap-failure", "1")
    plugin.until_unhealthy(node.uuid(6), "row remapping failed")
    node.sim("function", "--function", function, "--ok")
    eventually(lambda: "events of GPUs are watched again" in plugin.log(), "and that they are")

    def heard():
        node.xid(3, 79)
        return node.uuid(3) in node.unhealthy()

    eventually(heard, "an XID is heard")
    assert sum(words in line for line in plugin.log().splitlines()) == 1


def test_a_count_that_hangs_later_costs_the_scans_alone(node):
    plugin = node.serve(config=quick())
    node.await_events()
    node.sim("function", "--function", "nvmlDeviceGetCount_v2", "--hang")
    eventually(lambda: "asking the driver for its GPUs does not return" in plugin.log(), "said")
    node.xid(3, 79)
    plugin.until_unhealthy(node.uuid(3), "XID 79")
    node.wait_for(capacity=8, allocatable=7)
    node.sim("set", "--gpu", "6", "--remap-failure", "1")
    plugin.until_unhealthy(node.uuid(6), "row remapping failed")


def test_a_gpu_that_hangs_at_start_holds_nobody_up(node):
    node.up()
    node.sim("gpu", "--gpu", "4", "--state", "hung")
    node.start_kubelet()
    plugin = node.start_plugin(config=quick())
    node.wait_for(allocatable=7)
    assert plugin.get("/livez")[0] == 200
    node.sim("gpu", "--gpu", "4", "--state", "ok")
    node.wait_for(capacity=8, allocatable=8)


@pytest.mark.long
@pytest.mark.parametrize("reload", [False, True])
def test_events_of_the_others_are_heard_beside_one_that_hangs_in_everything(node, reload):
    plugin = node.serve(config=quick(watchdog="2s", polling={"interval": "1h"}))
    node.await_events()
    node.sim("gpu", "--gpu", "3", "--state", "hung")
    plugin.signal(1)  # to have it asked something
    plugin.until_unhealthy(node.uuid(3), "does not return")
    if reload:
        opened = plugin.log().count("driver session opened")
        plugin.signal(1)
        eventually(lambda: plugin.log().count("driver session opened") > opened, "a fresh session beside it")
    node.await_events(node.waits())
    node.xid(0, 79)
    plugin.until_unhealthy(node.uuid(0), "XID 79")


def test_what_happens_while_a_session_is_refreshed_is_heard(node):
    plugin = node.serve(config=quick(polling={"interval": "1h"}))
    node.await_events()
    plugin.signal(1)
    eventually(lambda: "session refreshed" in plugin.log(), "the session is about to close")
    node.xid("0,1,2", 79)  # at one stroke: the first ends the wait, and with it the session
    for gpu in (0, 1, 2):
        plugin.until_unhealthy(node.uuid(gpu), "XID 79")
