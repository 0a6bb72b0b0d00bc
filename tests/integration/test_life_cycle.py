"""The registration through everything that a kubelet, a folder or a second instance does to it."""

import pytest
from simnode import GPU, eventually


def registration(plugin):
    return plugin.status()["resources"][0]["registration"]


def sockets(node):
    return {path.name for path in node.kubelet_dir.glob("nvidia-gpu-*.sock")}


@pytest.fixture(params=["1.34", "1.37"])
def like(request):
    return request.param


@pytest.fixture
def pair(node):
    node.up("dgx-h100", "--gpus", "2")
    return node


def serve(node, like, *kubelet):
    node.start_kubelet(like, *kubelet)
    plugin = node.start_plugin()
    node.wait_for(capacity=2, allocatable=2)
    return plugin


def test_it_serves_before_it_registers_and_each_registration_has_a_path_of_its_own(pair, like):
    plugin = serve(pair, like)
    for losses in range(1, 4):
        pair.do("drop-stream", resource=GPU)
        eventually(lambda: len(pair.events("registered")) == 1 + losses, "registered after the loss")  # noqa: B023
        eventually(lambda: pair.events("list", endpoint=registration(plugin)["endpoint"]), "the stream is there")
    pair.wait_for(allocatable=2)
    paths = [event["endpoint"] for event in pair.events("register")]
    assert len(set(paths)) == len(paths)
    assert not pair.events("register-failed")
    # The paths of registrations that have ended are gone.
    eventually(lambda: sockets(pair) == {registration(plugin)["endpoint"]}, "one socket is left")


def test_its_own_socket_removed_is_put_back_while_its_stream_lives(pair, like):
    plugin = serve(pair, like)
    path = pair.kubelet_dir / registration(plugin)["endpoint"]
    path.unlink()
    eventually(path.is_socket, "it is back")
    assert len(pair.events("register")) == 1
    pair.allocate(1)


def test_a_register_call_that_hangs_survives_the_loss_of_the_socket(pair, like):
    """A starting kubelet cleans its folder while a call of ours is under way: its dial must succeed."""
    pair.start_kubelet(like)
    pair.do("delay", ms=1000)
    pair.start_plugin()
    endpoint = eventually(lambda: pair.events("register"), "Register is under way")[0]["endpoint"]
    (pair.kubelet_dir / endpoint).unlink()
    pair.wait_for(capacity=2, allocatable=2)
    assert [event["endpoint"] for event in pair.events("registered")] == [endpoint]


@pytest.mark.parametrize("leave_socket", [False, True])
def test_a_kubelet_that_is_down_for_a_while(pair, like, leave_socket):
    plugin = serve(pair, like)
    pair.do("stop", leave_socket=leave_socket)
    eventually(lambda: not registration(plugin)["registered"], "the loss is noticed")
    assert plugin.get("/readyz")[0] == 503
    pair.do("start")
    pair.wait_for(capacity=2, allocatable=2)
    eventually(lambda: plugin.get("/readyz")[0] == 200, "ready again")
    pair.allocate(2)


def test_a_kubelet_restart_that_loses_its_checkpoint(pair, like):
    serve(pair, like)
    pair.allocate(1, pod="old")
    pair.do("restart", lose_checkpoint=True)
    pair.wait_for(capacity=2, allocatable=2)
    pair.allocate(2, pod="new")


def test_refusals_are_told_and_retried(pair, like):
    pair.start_kubelet(like)
    pair.do("refuse", count=1000, message="not today")
    plugin = pair.start_plugin()
    eventually(lambda: "not today" in registration(plugin).get("lastError", ""), "the refusal is told")
    assert "not today" in plugin.get("/readyz")[1]
    pair.do("refuse", count=0)
    pair.wait_for(capacity=2, allocatable=2)
    assert "lastError" not in registration(plugin)


def test_plugin_and_kubelet_restart_in_turn(pair, like):
    """Whatever the order, the node ends with the right list and pods keep what they hold."""
    serve(pair, like)
    held = pair.allocate(1, pod="held")["devices"]
    for step in range(4):
        if step % 2:
            pair.do("restart")
        else:
            assert pair.plugins[-1].stop() == 0
            pair.start_plugin()
        eventually(lambda: registration(pair.plugins[-1])["registered"], f"registered after step {step}")  # noqa: B023
        pair.wait_for(capacity=2, allocatable=2)
    assert pair.allocate(1, pod="other")["devices"] != held


@pytest.mark.parametrize("ends", ["stop", "kill"])
def test_of_two_instances_either_may_end(pair, like, ends):
    """A rolling update with surge, and one that is taken back: whoever is left serves."""
    serve(pair, like)
    staying = pair.plugins[0]
    for who in ("older", "newer"):
        newer = pair.start_plugin()
        eventually(lambda: registration(newer)["registered"], "the newer one registers")  # noqa: B023
        leaving, staying = (staying, newer) if who == "older" else (newer, staying)
        if ends == "stop":
            assert leaving.stop() == 0
        else:
            leaving.kill()
        eventually(lambda: registration(staying)["registered"], "the other one serves")  # noqa: B023
        pair.wait_for(capacity=2, allocatable=2)
        eventually(lambda: pair.ask("allocate", resource=GPU, count=2, pod="probe")["ok"], "pods get GPUs")
        pair.do("release", pod="probe")


def test_with_two_instances_there_is_no_gap_on_the_newest_kubelet(pair):
    first = serve(pair, "1.37")
    second = pair.start_plugin()
    eventually(lambda: registration(second)["registered"], "the second registers")
    first.stop()
    eventually(lambda: len(pair.events("stream-ended")) == 1, "the first has ended")
    pair.allocate(2)
    assert all(event["resources"][GPU] == {"capacity": 2, "allocatable": 2} for event in pair.events("node"))
