"""Options and commands of the kubelet stand-in that no other test needs, with the real plugin."""

import json
import subprocess

from simnode import BIN, GPU, eventually


def ctl(node, command):
    done = subprocess.run([str(BIN / "ndp-sim"), "kubelet-ctl", "--dir", str(node.dir), command],
                          capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, json.loads(done.stdout)


def test_a_resource_without_a_plugin_is_forgotten_after_the_time_told(node):
    node.up("pcie-t4")
    node.start_kubelet("1.37", "--forget-after", "300ms")
    plugin = node.start_plugin()
    node.wait_for(capacity=4, allocatable=4)
    plugin.kill()
    eventually(lambda: GPU not in node.resources(), "the resource is forgotten")
    # It is counted with all of its devices until then.
    seen = [event["resources"].get(GPU) for event in node.events("node")]
    assert {"capacity": 4, "allocatable": 0} in seen


def test_the_seed_decides_the_order_of_ids(node):
    def asked(seed):
        node.start_kubelet("1.37", "--seed", str(seed))
        plugin = node.start_plugin()
        node.wait_for(capacity=8, allocatable=8)
        node.allocate(3)
        node.do("release", pod="pod")
        plugin.stop()
        node.do("quit")
        node.kubelet.wait(60)
        (event,) = node.events("preferred")
        (node.dir / "kubelet.log").unlink()
        return event["available"]

    node.up("dgx-h100")
    first, again, other = asked(1), asked(1), asked(2)
    assert first == again and first != other and sorted(first) == sorted(other)


def test_commands_by_another_process(node):
    node.up("pcie-t4")
    node.start_kubelet("1.34", "--no-stdin")
    node.start_plugin()
    node.wait_for(capacity=4, allocatable=4)
    assert ctl(node, "status")[1]["resources"][GPU]["capacity"] == 4
    rc, answer = ctl(node, json.dumps({"command": "allocate", "resource": GPU, "count": 5}))
    assert rc == 1 and not answer["ok"] and answer["error"]
    rc, answer = ctl(node, json.dumps({"command": "restart", "down_ms": 300}))
    assert rc == 0
    gone, back = node.events("stopped")[-1], node.events("listening")[-1]
    assert node.seconds(back) - node.seconds(gone) >= 0.3
    node.wait_for(capacity=4, allocatable=4)
    assert ctl(node, "quit")[0] == 0
    assert node.kubelet.wait(60) == 0


def test_one_at_a_time_plays_in_a_folder(node):
    node.serve("pcie-t4", 4)
    second = node.sim("kubelet", "--no-stdin", ok=False)
    assert second.count("\n") == 1
    assert f"{node.dir}: a kubelet stand-in plays here already (ndp-sim kubelet-ctl --dir {node.dir} quit" in second
    node.wait_for(capacity=4, allocatable=4, endpoints=1)
    assert len(node.allocate(2)["devices"]) == 2
    # As `quit` ends it, so that the next may begin.
    node.do("quit")
    node.kubelet.wait(60)
    node.start_kubelet()
    node.wait_for(capacity=4, allocatable=4, endpoints=1)


def test_what_a_killed_one_has_left_is_taken_over(node):
    node.serve("pcie-t4", 4)
    node.kubelet.kill()
    node.kubelet.wait()
    assert (node.kubelet_dir / "kubelet.sock").is_socket() and (node.kubelet_dir / "control.sock").is_socket()
    node.start_kubelet()
    node.wait_for(capacity=4, allocatable=4, endpoints=1)


def test_a_folder_that_is_no_machine_is_refused_and_nothing_is_made(node):
    typo = node.dir / "typo"
    for folder in (typo, node.dir):
        done = subprocess.run([str(BIN / "ndp-sim"), "kubelet", "--no-stdin", "--dir", str(folder)],
                              capture_output=True, text=True, timeout=60, check=False)  # fmt: skip
        assert done.returncode == 1 and done.stdout == ""
        assert done.stderr == (f"ndp-sim kubelet: --dir: {folder}: no simulated machine here "
                               f"(ndp-sim up --dir {folder} makes one)\n")  # fmt: skip
    assert not typo.exists() and not node.kubelet_dir.exists()


def test_a_plugin_with_real_gpus_needs_no_machine(node):
    node.start_kubelet("1.37", "--no-machine")
    assert node.do("status")["running"]


def test_a_wrong_command_is_told_before_it_is_sent(node):
    rc = subprocess.run([str(BIN / "ndp-sim"), "kubelet-ctl", "--dir", str(node.dir), "dance"],
                        capture_output=True, text=True, timeout=60, check=False)  # fmt: skip
    assert rc.returncode == 2 and rc.stdout == "" and rc.stderr.count("\n") == 1
    assert rc.stderr.startswith("ndp-sim kubelet-ctl: no command 'dance': must be one of status, wait,")


def test_without_a_stand_in_the_question_is_whether_it_runs(node):
    node.up("pcie-t4")
    told = node.sim("kubelet-ctl", "status", ok=False)
    assert told.startswith("ndp-sim kubelet-ctl: no kubelet stand-in answers "
                           f"(does ndp-sim kubelet --dir {node.dir} run?)")  # fmt: skip
