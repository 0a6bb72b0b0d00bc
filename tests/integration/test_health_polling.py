"""Polled checks: what marks, after how many samples, and what passes."""

import time

import pytest
from simnode import GPU, eventually, quick


def polls(node, gpus=8):
    """The number of complete rounds of polls so far."""
    return node.calls().get("nvmlDeviceGetMemoryInfo", 0) // gpus


def after_polls(node, rounds=4):
    seen = polls(node)
    eventually(lambda: polls(node) >= seen + rounds, f"{rounds} more polls")


def test_row_remapping_at_start_is_in_the_very_first_list(node):
    node.up()
    node.sim("set", "--gpu", "1", "--remap-failure", "1")
    node.sim("set", "--gpu", "2", "--remap-pending", "1")
    node.start_kubelet()
    plugin = node.start_plugin(config=quick(polling={"interval": "1h"}))
    node.wait_for(capacity=8, allocatable=7)
    lists = node.lists()
    assert len(lists) == 1
    assert [d["id"] for d in lists[0]["devices"] if d["health"] == "Unhealthy"] == [node.uuid(1)]
    assert plugin.verdict(node.uuid(1))["reason"] == "row remapping failed"
    pending = plugin.verdict(node.uuid(2))
    assert pending["verdict"] == "Healthy" and "row remapping is pending" in pending["warnings"][0]
    assert "row remapping is pending" in plugin.log()


def test_a_mig_gpu_that_tells_nothing_of_rows_is_healthy(node):
    node.up()
    node.sim("mig", "--gpu", "0", "--mode", "on")
    node.sim("mig", "--gpu", "0", "--profiles", "1g.10gb*7")
    node.sim("set", "--gpu", "0", "--remap-failure", "1")  # NOT_SUPPORTED is what NVML says in MIG mode
    node.start_kubelet()
    plugin = node.start_plugin("--mig-strategy=mixed", config=quick())
    node.wait_for("nvidia.com/mig-1g.10gb", capacity=7, allocatable=7)
    after_polls(node)
    assert all(v["verdict"] == "Healthy" for v in plugin.verdicts().values())
    assert node.resources()["nvidia.com/mig-1g.10gb"]["allocatable"] == 7


def test_temperature_needs_two_samples_and_five_degrees_less(node):
    plugin = node.serve(config=quick())
    uuid = node.uuid(3)
    node.sim("set", "--gpu", "3", "--temperature", "92")  # the shutdown threshold of this machine
    verdict = plugin.until_unhealthy(uuid, "temperature", "92")
    assert verdict["class"] == "condition"
    node.wait_for(capacity=8, allocatable=7)
    node.sim("set", "--gpu", "3", "--temperature", "88")  # lower, but not by five
    after_polls(node)
    assert plugin.verdict(uuid)["verdict"] == "Unhealthy"
    node.sim("set", "--gpu", "3", "--temperature", "87")
    plugin.until_healthy(uuid)
    node.wait_for(capacity=8, allocatable=8)


@pytest.mark.long
def test_one_hot_sample_is_none(node):
    # No polls but the one of each new session.
    plugin = node.serve(config=quick(polling={"interval": "1h"}))
    uuid = node.uuid(3)
    samples = 8

    def sample(temperature):
        nonlocal samples
        node.sim("set", "--gpu", "3", "--temperature", str(temperature))
        eventually(lambda: node.calls().get("nvmlDeviceGetTemperature", 0) == samples, "no sample is out")
        plugin.signal(1)
        samples += 8
        eventually(lambda: node.calls().get("nvmlDeviceGetTemperature", 0) == samples, "all GPUs are sampled")
        # Its answer has come when that of a later session has: one more scan.
        counted = node.calls()["nvmlDeviceGetCount_v2"]
        eventually(lambda: node.calls()["nvmlDeviceGetCount_v2"] > counted, "scanned once more")

    sample(99)
    sample(40)
    sample(99)
    assert plugin.verdict(uuid)["verdict"] == "Healthy" and len(node.lists()) == 1
    plugin.signal(1)  # it is as hot in the next sample
    plugin.until_unhealthy(uuid, "temperature")


@pytest.mark.parametrize("threshold", ["0", "-1", "7", "60"])
def test_thresholds_that_are_no_temperatures_are_ignored(node, threshold):
    node.up()
    for gpu in range(8):
        node.sim("set", "--gpu", str(gpu), "--threshold", f"shutdown={threshold}", "--temperature", "99")
    node.start_kubelet()
    plugin = node.start_plugin(config=quick())
    node.wait_for(capacity=8, allocatable=8)
    after_polls(node)
    assert all(v["verdict"] == "Healthy" for v in plugin.verdicts().values())


def test_recovery_action_is_seen_without_any_event(node):
    plugin = node.serve(config=quick())
    node.sim("set", "--gpu", "0", "--recovery-action", "2")
    assert plugin.until_unhealthy(node.uuid(0), "recovery action 2", "reboot")["class"] == "reset"
    node.sim("set", "--gpu", "0", "--recovery-action", "0")
    plugin.until_healthy(node.uuid(0))


def test_a_gpu_that_needs_a_reset(node):
    plugin = node.serve(config=quick())
    node.sim("gpu", "--gpu", "0", "--state", "reset-required")
    assert plugin.until_unhealthy(node.uuid(0), "needs it reset")["class"] == "reset"
    node.wait_for(capacity=8, allocatable=7)
    node.sim("clear", "--gpu", "0")
    plugin.until_healthy(node.uuid(0))


def test_a_fabric_that_was_completed_and_is_not(node):
    plugin = node.serve(config=quick())
    after_polls(node, 1)
    node.sim("set", "--gpu", "5", "--fabric", "in-progress")
    plugin.until_unhealthy(node.uuid(5), "fabric", "in progress")
    node.sim("set", "--gpu", "5", "--fabric", "completed")
    plugin.until_healthy(node.uuid(5))
    node.sim("set", "--gpu", "5", "--fabric", "not-supported")
    after_polls(node)
    assert plugin.verdict(node.uuid(5))["verdict"] == "Healthy"


def test_pages_pending_retirement(node):
    node.up("pcie-t4")
    node.sim("set", "--gpu", "1", "--retired-pending", "1")
    node.sim("set", "--gpu", "2", "--retired-pending", "1", "--ecc-uncorrected", "1")
    node.start_kubelet()
    config = quick(polling={"checks": {"retiredPages": True}})
    plugin = node.start_plugin(config=config)
    node.wait_for(capacity=4)
    plugin.until_unhealthy(node.uuid(2), "double bit error")
    plain = plugin.verdict(node.uuid(1))
    assert plain["verdict"] == "Healthy" and "page retirement is pending" in plain["warnings"][0]
    config["health"]["polling"]["checks"]["retiredPages"] = False
    node.write_config(config)
    plugin.until_healthy(node.uuid(2))


def test_a_check_that_is_off_marks_nothing(node):
    plugin = node.serve(config=quick(polling={"checks": {"temperature": False}}))
    node.sim("set", "--gpu", "3", "--temperature", "99")
    after_polls(node)
    assert plugin.verdict(node.uuid(3))["verdict"] == "Healthy"


@pytest.mark.parametrize("function", ["nvmlDeviceGetRemappedRows", "nvmlDeviceGetTemperature",
                                      "nvmlDeviceGetFieldValues", "nvmlDeviceGetMemoryInfo"])
def test_what_is_not_supported_passes(node, function):
    node.up()
    node.sim("function", "--function", function, "--error", "not-supported")
    node.start_kubelet()
    plugin = node.start_plugin(config=quick())
    node.wait_for(capacity=8, allocatable=8)
    after_polls(node)
    assert all(v["verdict"] == "Healthy" for v in plugin.verdicts().values())


SHARED = {"sharing": {"timeSlicing": {"resources": [{"name": GPU, "replicas": 2}]}}}


def test_an_exclusive_compute_mode_left_on_a_shared_gpu(node):
    plugin = node.serve(capacity=16, config=quick() | SHARED)
    uuid = node.uuid(1)
    node.sim("set", "--gpu", "1", "--compute-mode", "exclusive")
    verdict = plugin.until_unhealthy(uuid, "compute mode is exclusive on a shared GPU")
    assert verdict["class"] == "condition" and "compute-mode=0" in verdict["nextStep"]
    node.wait_for(capacity=16, allocatable=14)
    assert node.unhealthy() == {f"{uuid}::0", f"{uuid}::1"}
    node.sim("set", "--gpu", "1", "--compute-mode", "default")
    plugin.until_healthy(uuid)
    node.wait_for(capacity=16, allocatable=16)


def test_on_a_gpu_of_one_owner_it_is_nobodys_business(node):
    plugin = node.serve(config=quick())
    node.sim("set", "--gpu", "1", "--compute-mode", "exclusive")
    node.sim("set", "--gpu", "2", "--compute-mode", "prohibited")
    plugin.until_unhealthy(node.uuid(2), "prohibited")
    time.sleep(0.2)
    assert plugin.verdict(node.uuid(1))["verdict"] == "Healthy"


def test_an_excluded_gpu_that_comes_back_in_is_judged_afresh(node):
    config = quick(recovery={"holdOff": "1h"})
    plugin = node.serve(config=config)
    uuid = node.uuid(1)
    node.write_config(config | {"devices": {"exclude": [{"index": 1}]}})
    eventually(lambda: uuid not in plugin.verdicts(), "it is nobody's concern")
    eventually(lambda: any(n["uuid"] == uuid for n in plugin.status()["notOffered"]), "not offered")
    after_scans = node.calls()["nvmlDeviceGetCount_v2"]
    eventually(lambda: node.calls()["nvmlDeviceGetCount_v2"] >= after_scans + 2, "two scans without it")
    node.write_config(config)
    plugin.until_healthy(uuid)
    node.wait_for(capacity=8, allocatable=8)
    assert "does not list" not in plugin.log()
    node.write_config(config | {"devices": {"exclude": [{"index": 1}]}})
    eventually(lambda: uuid not in plugin.verdicts(), "out again")
    node.sim("set", "--gpu", "1", "--remap-failure", "1")
    node.write_config(config)
    plugin.until_unhealthy(uuid, "row remapping failed")
