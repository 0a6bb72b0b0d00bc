"""CDI in the running plugin: what is on disk follows what is offered, and trouble is told, not fatal."""

import fcntl
import json
import os
import shutil

import pytest
from simnode import GPU, eventually

VENDOR = "k8s.device-plugin.nvidia.com"
SMALL = "nvidia.com/mig-1g.10gb"
CDI_ONLY = "--device-list-strategy=cdi-cri"
WITH_ENVVAR = "--device-list-strategy=envvar,cdi-cri,cdi-annotations"
NO_GPUS = """
driver: 570.86.15
cuda: "12.8"
gpus: []
"""


def up(node, *args, profile="pcie-t4", **kwargs):
    node.up(profile)
    node.start_kubelet()
    return node.start_plugin(*args, **kwargs)


def names_of_a_gpu(node):
    """The CDI names in an answer for the first GPU, none while nobody answers; no pod holds it afterwards."""
    answer = node.ask("raw-allocate", resource=GPU, devices=[node.uuid(0)])
    return answer["response"]["cdiDevices"] if answer["ok"] else []


def warnings(plugin, *words):
    return [line for line in plugin.log().splitlines() if " W " in line and all(word in line for word in words)]


# -- bad input ------------------------------------------------------------------------------------
def test_unknown_feature_flags_and_hooks_are_warnings(node):
    plugin = up(node, CDI_ONLY, "--cdi-feature-flags=fly", "--cdi-disable-hooks=no-such-hook,update-ldcache")
    node.wait_for(capacity=4, allocatable=4)
    assert len(warnings(plugin, "cdi-feature-flags", "fly")) == 1
    assert len(warnings(plugin, "cdi-disable-hooks", "no-such-hook")) == 1
    assert "update-ldcache" not in json.dumps(node.cdi()) and "create-symlinks" in json.dumps(node.cdi())


@pytest.mark.parametrize("prefix", ["cdi.k8s.io", "Not A Prefix/", "/", "a_b/"])
def test_a_bad_annotation_prefix_is_refused(node, prefix):
    plugin = up(node, "--device-list-strategy=cdi-annotations", f"--cdi-annotation-prefix={prefix}")
    assert plugin.process.wait(20) == 2
    assert "cdi-annotation-prefix" in plugin.log() and prefix in plugin.log()


def test_a_folder_that_cannot_be_written_makes_devices_unhealthy_until_it_can(node):
    (node.dir / "cdi").write_text("a file where the folder should be")
    plugin = up(node, CDI_ONLY)
    node.wait_for(capacity=4, allocatable=0)
    assert str(node.dir / "cdi") in plugin.device("GPU-")["reason"]
    assert plugin.process.poll() is None, "no crash loop"
    (node.dir / "cdi").unlink()
    node.wait_for(capacity=4, allocatable=4)
    assert len(node.cdi()["devices"]) == 4


def test_with_another_strategy_on_that_is_a_warning_and_costs_the_cdi_names_alone(node):
    (node.dir / "cdi").write_text("a file where the folder should be")
    plugin = up(node, WITH_ENVVAR)
    node.wait_for(capacity=4, allocatable=4)
    assert len(warnings(plugin, str(node.dir / "cdi"))) == 1
    assert not [line for line in plugin.log().splitlines() if " E " in line]
    response = node.allocate(1)["response"]
    assert response["envs"]["NVIDIA_VISIBLE_DEVICES"].startswith("GPU-")
    assert response["cdiDevices"] == [] and response["annotations"] == {}, "no runtime could resolve them"
    (node.dir / "cdi").unlink()
    eventually(node.cdi, "the file is written")
    eventually(lambda: names_of_a_gpu(node), "and named again", 5)


def test_a_foreign_file_of_our_name_is_left_alone(node):
    foreign = '{"cdiVersion": "0.5.0", "kind": "example.org/gpu", "devices": []}'
    (node.dir / "cdi").mkdir()
    node.cdi_file().write_text(foreign)
    plugin = up(node, CDI_ONLY)
    node.wait_for(capacity=4, allocatable=0)
    reason = plugin.device("GPU-")["reason"]
    assert str(node.cdi_file()) in reason and "example.org/gpu" in reason
    assert node.cdi_file().read_text() == foreign
    node.cdi_file().rename(node.dir / "cdi/mine.json")
    node.wait_for(capacity=4, allocatable=4)


def test_a_folder_removed_while_running_is_made_again(node):
    plugin = up(node, CDI_ONLY)
    node.wait_for(capacity=4, allocatable=4)
    before = node.cdi()
    shutil.rmtree(node.dir / "cdi")
    assert eventually(node.cdi, "the file is back") == before
    node.cdi_file().unlink()
    assert eventually(node.cdi, "a single file too") == before
    assert warnings(plugin, "written again")


def test_a_name_that_another_file_defines_too_is_not_handed_out(node):
    plugin = up(node, CDI_ONLY)
    node.wait_for(capacity=4, allocatable=4)
    copy = node.dir / "cdi/copy-of-one.json"
    theirs = dict(node.cdi())
    theirs["devices"] = [device for device in theirs["devices"] if device["name"] == node.uuid(2)]
    copy.write_text(json.dumps(theirs))
    node.wait_for(capacity=4, allocatable=3)
    assert node.unhealthy() == {node.uuid(2)}
    reason = plugin.device(node.uuid(2))["reason"]
    assert str(copy) in reason and node.uuid(2) in reason
    assert len(warnings(plugin, str(copy))) == 1
    copy.unlink()
    node.wait_for(capacity=4, allocatable=4)
    copy.write_text("kind: example.org/other\n")
    (node.dir / "cdi/broken.json").write_text("{")
    plugin.signal(1)
    eventually(lambda: plugin.log().count("driver session opened") == 2, "everything was looked at again")
    assert node.unhealthy() == set()


def test_why_a_device_has_no_entry_is_in_the_log_once(node):
    node.up("dgx-h100", "--gpus", "2")
    node.partition(0, "1g.10gb*7")
    node.start_kubelet()
    plugin = node.start_plugin(CDI_ONLY)
    node.wait_for(capacity=2, allocatable=1)
    assert node.unhealthy() == {node.uuid(0)}
    assert len(warnings(plugin, node.uuid(0), "only its MIG devices have CDI entries")) == 1


def test_new_devices_wait_for_their_entries_on_disk(node):
    node.up("dgx-h100", "--gpus", "1")
    node.partition(0, "3g.40gb*2")
    node.start_kubelet()
    plugin = node.start_plugin(CDI_ONLY, "--mig-strategy=mixed", "--rescan-interval=100ms")
    node.wait_for("nvidia.com/mig-3g.40gb", capacity=2, allocatable=2)
    (node.dir / "cdi").rename(node.dir / "away")
    (node.dir / "cdi").write_text("in the way")
    node.sim("mig", "--gpu", "0", "--profiles", "1g.10gb*6")
    new = {mig["uuid"] for mig in node.gpus()[0]["mig"]}
    assert len(new) == 6

    def listed(health):
        return {device["id"] for entry in node.lists(SMALL) for device in entry["devices"] if device["health"] == health}

    eventually(lambda: new <= listed("Unhealthy"), "they are listed")
    assert not new & listed("Healthy"), "no runtime could resolve them"
    assert str(node.dir / "cdi") in plugin.device(min(new), SMALL)["reason"]
    (node.dir / "cdi").unlink()
    node.wait_for(SMALL, allocatable=6)
    assert {device["name"] for device in node.cdi()["devices"]} >= new


def test_two_instances_with_different_names_do_not_take_each_others_from_the_runtime(node):
    """An update or a rollback of --device-id-strategy and of a class, while both serve."""
    node.up("pcie-t4")
    node.add_device("/dev/gdrdrv", 235, 0)
    node.start_kubelet()
    first = node.start_plugin(CDI_ONLY, "--gdrcopy-enabled")
    node.wait_for(capacity=4, allocatable=4)
    kept = node.cdi_file("gdrcopy").stat().st_ino
    second = node.start_plugin(CDI_ONLY, "--device-id-strategy=index")
    eventually(lambda: f"{VENDOR}/gpu=0" in names_of_a_gpu(node), "the second instance answers")

    def on_disk():
        return {device["name"] for device in node.cdi()["devices"]}

    all_names = {node.uuid(gpu) for gpu in range(4)} | {"0", "1", "2", "3"}
    eventually(lambda: on_disk() == all_names, "the file has the names of both")
    second.kill()
    eventually(lambda: f"{VENDOR}/gpu={node.uuid(0)}" in names_of_a_gpu(node), "the first instance answers")
    assert node.uuid(0) in on_disk()
    assert node.cdi_file("gdrcopy").stat().st_ino == kept, "it was never away"
    assert len(warnings(first, "names of another instance")) == 1


def test_a_folder_that_somebody_locks_holds_nobody_up(node):
    """Instances wait for each other's writes by a lock of the folder; one that hangs with it is not waited for."""
    node.up("pcie-t4")
    node.start_kubelet()
    (node.dir / "cdi").mkdir()
    folder = os.open(node.dir / "cdi", os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        node.start_plugin(CDI_ONLY)
        node.wait_for(capacity=4, allocatable=4)
    finally:
        os.close(folder)
    assert {device["name"] for device in node.cdi()["devices"]} >= {node.uuid(gpu) for gpu in range(4)}


# -- IMEX, GDS, MOFED, GDRCopy --------------------------------------------------------------------
@pytest.mark.parametrize("strategy", [CDI_ONLY, "--device-list-strategy=envvar", WITH_ENVVAR])
def test_a_required_imex_channel_is_waited_for(node, strategy):
    plugin = up(node, strategy, config={"imex": {"channelIDs": [0], "required": True}})
    node.wait_for(capacity=4, allocatable=0)
    assert "IMEX channel 0" in plugin.device("GPU-")["reason"]
    node.add_device("/dev/nvidia-caps-imex-channels/channel0", 237, 0)
    node.wait_for(capacity=4, allocatable=4)
    response = node.allocate(1)["response"]
    if "envvar" in strategy:
        assert response["envs"]["NVIDIA_IMEX_CHANNELS"] == "0"
    if "cdi" in strategy:
        assert response["cdiDevices"][-1] == f"{VENDOR}/imex-channel=0"
        (device,) = node.cdi("imex-channel")["devices"]
        assert device["name"] == "0"


def test_a_channel_that_is_not_required_is_picked_up_when_it_comes(node):
    plugin = up(node, CDI_ONLY, config={"imex": {"channelIDs": [0]}})
    node.wait_for(capacity=4, allocatable=4)
    assert len(node.allocate(1)["response"]["cdiDevices"]) == 1
    assert node.cdi("imex-channel") is None and len(warnings(plugin, "IMEX")) == 1
    node.add_device("/dev/nvidia-caps-imex-channels/channel0", 237, 0)
    eventually(lambda: node.cdi("imex-channel"), "the class is there")
    eventually(lambda: len(names_of_a_gpu(node)) == 2, "and handed out", 5)


def test_absent_storage_and_network_nodes_are_one_warning_each_and_come_later(node):
    plugin = up(node, CDI_ONLY, "--gds-enabled", "--mofed-enabled", "--gdrcopy-enabled")
    node.wait_for(capacity=4, allocatable=4)
    response = node.allocate(1)["response"]
    assert len(response["cdiDevices"]) == 1
    assert response["envs"] == {f"NVIDIA_{name}": "enabled" for name in ["GDS", "MOFED", "GDRCOPY"]}
    for name in ["gds", "mofed", "gdrcopy"]:
        assert node.cdi(name) is None
        assert len(warnings(plugin, f"{name} is enabled")) == 1
    plugin.signal(1)  # once more through everything
    node.add_device("/dev/gdrdrv", 235, 0)
    node.add_device("/dev/nvidia-fs0", 499, 0)
    node.add_device("/dev/infiniband/uverbs0", 231, 192)
    for name in ["gds", "mofed", "gdrcopy"]:
        eventually(lambda name=name: node.cdi(name), f"{name} is there")
        assert len(warnings(plugin, f"{name} is enabled")) == 1
    late = {f"{VENDOR}/{name}=all" for name in ["gds", "mofed", "gdrcopy"]}
    eventually(lambda: late <= set(names_of_a_gpu(node)), "and handed out", 5)


# -- nothing to offer -----------------------------------------------------------------------------
def test_without_a_gpu_there_is_no_file(node):
    (node.dir / "empty.yaml").write_text(NO_GPUS)
    plugin = up(node, CDI_ONLY, profile=str(node.dir / "empty.yaml"))
    eventually(lambda: plugin.status()["driver"].get("platform") == "nvml", "the driver was asked")
    plugin.signal(1)
    eventually(lambda: plugin.log().count("driver session opened") == 2, "and asked again")
    assert node.cdi() is None and node.resources() == {}
    assert plugin.process.poll() is None


def test_where_all_gpus_are_in_mig_mode_and_empty_there_is_no_file_until_there_is_a_slice(node):
    node.up("dgx-a100", "--gpus", "2")
    for gpu in ["0", "1"]:
        node.sim("mig", "--gpu", gpu, "--mode", "on")
    node.start_kubelet()
    plugin = node.start_plugin(CDI_ONLY, "--mig-strategy=mixed")
    eventually(lambda: len(plugin.status()["gpus"]) == 2, "the driver was asked")
    assert node.cdi() is None and node.resources() == {}
    node.sim("mig", "--gpu", "1", "--profiles", "3g.20gb")
    resource = "nvidia.com/mig-3g.20gb"
    eventually(lambda: resource in node.resources(), "the slice is offered")
    node.wait_for(resource, capacity=1, allocatable=1)
    response = node.allocate(1, resource)["response"]
    assert response["cdiDevices"] == [f"{VENDOR}/gpu={node.cdi()['devices'][0]['name']}"]


def test_a_gpu_without_an_entry_is_not_offered_by_cdi_alone(node):
    """In MIG mode a GPU has none; strategy none offers it whole."""
    node.up("dgx-a100", "--gpus", "2")
    node.sim("mig", "--gpu", "1", "--mode", "on")
    node.start_kubelet()
    plugin = node.start_plugin(CDI_ONLY)
    node.wait_for(capacity=2, allocatable=1)
    reasons = [device.get("reason") for device in plugin.status()["resources"][0]["devices"]]
    assert reasons[0] is None and "MIG mode" in reasons[1]


# -- together -------------------------------------------------------------------------------------
def test_every_strategy_with_sharing_and_slices(node):
    node.up("dgx-a100", "--gpus", "2")
    node.sim("mig", "--gpu", "0", "--mode", "on")
    node.sim("mig", "--gpu", "0", "--profiles", "3g.20gb*2")
    node.start_kubelet()
    shared = [{"name": "nvidia.com/mig-3g.20gb", "replicas": 2}]
    node.start_plugin("--device-list-strategy=envvar,volume-mounts,cdi-annotations,cdi-cri", "--mig-strategy=mixed",
                      "--pass-device-specs", config={"sharing": {"timeSlicing": {"resources": shared}}})  # fmt: skip
    resource = "nvidia.com/mig-3g.20gb"
    node.wait_for(resource, capacity=4, allocatable=4)
    answer = node.allocate(4, resource)
    response = answer["response"]
    ids = sorted({device.split("::")[0] for device in answer["devices"]})
    assert sorted(name.removeprefix(f"{VENDOR}/gpu=") for name in response["cdiDevices"]) == ids
    assert len(response["mounts"]) == 2 and len(response["annotations"]) == 1
    on_disk = {device["name"] for device in node.cdi()["devices"]}
    assert set(ids) < on_disk, "and the whole GPU"


def test_with_mps_cdi_alone_still_sends_the_pipe(node):
    node.up("pcie-t4")
    started = node.dir / "root/mps/nvidia.com/gpu/.started"
    started.parent.mkdir(parents=True)
    started.touch()
    node.start_kubelet()
    shared = [{"name": GPU, "replicas": 2}]
    node.start_plugin(CDI_ONLY, "--mps-root=/run/nvidia/mps", config={"sharing": {"mps": {"resources": shared}}})
    node.wait_for(capacity=8, allocatable=8)
    response = node.allocate(1)["response"]
    assert response["envs"] == {"CUDA_MPS_PIPE_DIRECTORY": "/mps/nvidia.com/gpu/pipe"}
    assert len(response["cdiDevices"]) == 1 and len(response["mounts"]) == 2


def test_nothing_is_written_again_when_nothing_changed(node):
    plugin = up(node, CDI_ONLY, "--rescan-interval=100ms")
    node.wait_for(capacity=4, allocatable=4)
    inode = node.cdi_file().stat().st_ino
    plugin.signal(1)
    eventually(lambda: plugin.log().count("driver session opened") == 2, "everything was looked at again")
    assert plugin.stop() == 0
    assert node.cdi_file().exists(), "containers that restart need it"
    node.start_plugin(CDI_ONLY)
    node.wait_for(capacity=4, allocatable=4)
    assert node.cdi_file().stat().st_ino == inode
