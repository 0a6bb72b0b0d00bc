"""Systems that are not a plain server with NVML: what the kubelet is offered, and what a container gets."""

import pytest
from simnode import BIN, GPU, eventually

CDI = "k8s.device-plugin.nvidia.com/gpu="
EVERY_STRATEGY = "--device-list-strategy=envvar,cdi-annotations,cdi-cri"


def serve(node, profile, capacity, *args, **kwargs):
    node.up(profile)
    node.start_kubelet()
    plugin = node.start_plugin(*args, **kwargs)
    node.wait_for(capacity=capacity, allocatable=capacity)
    return plugin


def platform(plugin):
    return plugin.status()["driver"]["platform"]


def names(spec):
    return [device["name"] for device in spec["devices"]]


def nodes(edits):
    return [node["path"] for node in edits.get("deviceNodes", [])]


def check_names(node, response, ids):
    """The names of both CDI strategies are those of the ids, and are in the file."""
    assert [device.removeprefix(CDI) for device in response["cdiDevices"]] == ids
    (annotation,) = response["annotations"].values()
    assert annotation == ",".join(CDI + name for name in ids)
    assert set(ids) <= set(names(node.cdi()))


# -- Tegra ----------------------------------------------------------------------------------------
@pytest.mark.parametrize(("args", "name"), [([], "tegra"), (["--device-id-strategy=index"], "0")])
def test_a_tegra_without_nvml_is_one_device_from_its_csv_files(node, args, name):
    plugin = serve(node, "jetson", 1, EVERY_STRATEGY, *args)
    assert platform(plugin) == "tegra"
    assert list(node.resources()) == [GPU]
    response = node.allocate(1)["response"]
    assert response["envs"]["NVIDIA_VISIBLE_DEVICES"] == name
    check_names(node, response, [name])
    (device,) = node.cdi()["devices"]
    assert "/dev/nvhost-ctrl-gpu" in nodes(device["containerEdits"])
    mounts = [mount["containerPath"] for mount in node.cdi()["containerEdits"]["mounts"]]
    assert "/usr/lib/aarch64-linux-gnu/nvidia/libcuda.so.1.1" in mounts


def test_a_tegra_can_be_shared(node):
    config = {"sharing": {"timeSlicing": {"resources": [{"name": GPU, "replicas": 3}]}}}
    serve(node, "jetson", 3, "--device-list-strategy=cdi-cri", config=config)
    response = node.allocate(1)["response"]
    assert response["cdiDevices"] == [CDI + "tegra"]
    assert response["envs"] == {}, "CDI alone"


def test_an_integrated_gpu_is_told_by_its_name(node):
    plugin = serve(node, "thor", 1, EVERY_STRATEGY)
    assert platform(plugin) == "tegra"
    check_names(node, node.allocate(1)["response"], ["tegra"])


def test_asked_for_nvml_an_integrated_gpu_is_a_gpu_like_others(node):
    plugin = serve(node, "thor", 1, "--device-discovery-strategy=nvml")
    assert platform(plugin) == "nvml"
    (device,) = plugin.status()["resources"][0]["devices"]
    assert device["id"].startswith("GPU-")


def test_asked_for_tegra_a_server_is_one(node):
    plugin = serve(node, "pcie-t4", 1, "--device-discovery-strategy=tegra")
    assert platform(plugin) == "tegra"
    assert node.allocate(1)["devices"] == ["tegra"]


def test_asked_for_nvml_a_tegra_without_it_is_refused(node):
    node.up("jetson")
    plugin = node.start_plugin("--device-discovery-strategy=nvml")
    assert plugin.process.wait(20) == 1
    assert "libnvidia-ml.so.1" in plugin.log()


def test_a_tegra_whose_csv_files_are_missing_is_unhealthy_with_the_reason_until_they_are_there(node):
    node.up("jetson")
    csv = node.dir / "root/etc/nvidia-container-runtime"
    csv.rename(node.dir / "away")
    node.start_kubelet()
    plugin = node.start_plugin("--device-list-strategy=cdi-cri")
    node.wait_for(capacity=1, allocatable=0)
    assert "CSV" in plugin.device("tegra")["reason"]
    (node.dir / "away").rename(csv)
    node.wait_for(capacity=1, allocatable=1)


# -- WSL ------------------------------------------------------------------------------------------
def test_wsl_is_one_device_for_all_gpus(node):
    plugin = serve(node, "wsl", 1, EVERY_STRATEGY, "--pass-device-specs")
    assert platform(plugin) == "wsl"
    response = node.allocate(1)["response"]
    assert response["envs"]["NVIDIA_VISIBLE_DEVICES"] == "all"
    assert [spec["containerPath"] for spec in response["devices"]] == ["/dev/dxg"]
    check_names(node, response, ["all"])
    (device,) = node.cdi()["devices"]
    assert nodes(device["containerEdits"]) == ["/dev/dxg"]
    mounts = [mount["containerPath"] for mount in node.cdi()["containerEdits"]["mounts"]]
    assert any(mount.endswith("/libcuda.so.1.1") for mount in mounts)


# -- driver roots ---------------------------------------------------------------------------------
def test_a_driver_in_a_container(node):
    plugin = serve(node, "driver-container", 4, EVERY_STRATEGY, "--pass-device-specs",
                   "--driver-root=/run/nvidia/driver", driver_root="run/nvidia/driver")  # fmt: skip
    assert platform(plugin) == "nvml"
    answer = node.allocate(2)
    response = answer["response"]
    assert all(spec["hostPath"] == "/run/nvidia/driver" + spec["containerPath"] for spec in response["devices"])
    assert len(response["devices"]) == 6, "two GPUs and the four control nodes"
    check_names(node, response, response["envs"]["NVIDIA_VISIBLE_DEVICES"].split(","))
    spec = node.cdi()
    for edits in [spec["containerEdits"], *(device["containerEdits"] for device in spec["devices"])]:
        for item in edits.get("mounts", []):
            assert item["hostPath"].startswith("/run/nvidia/driver/"), item
            assert not item["containerPath"].startswith("/run/nvidia/driver/"), item
        for item in edits.get("deviceNodes", []):
            assert item["hostPath"] == "/run/nvidia/driver" + item["path"], item


def test_gke_keeps_the_driver_apart_from_the_device_nodes(node):
    root = "/home/kubernetes/bin/nvidia"
    plugin = serve(node, "gke", 2, EVERY_STRATEGY, "--pass-device-specs", f"--driver-root={root}", "--dev-root=/",
                   driver_root=root[1:])  # fmt: skip
    assert platform(plugin) == "nvml"
    response = node.allocate(1)["response"]
    assert all(spec["hostPath"] == spec["containerPath"] for spec in response["devices"])
    spec = node.cdi()
    mounts = {mount["containerPath"]: mount["hostPath"] for mount in spec["containerEdits"]["mounts"]}
    assert mounts["/bin/nvidia-smi"] == f"{root}/bin/nvidia-smi"
    assert mounts["/etc/vulkan/icd.d/nvidia_icd.json"] == f"{root}/vulkan/icd.d/nvidia_icd.json"
    assert [path for path in mounts if path.startswith("/lib64/libcuda.so.")]
    for device in spec["devices"]:
        assert all(node["hostPath"] == node["path"] for node in device["containerEdits"]["deviceNodes"])


# -- no GPU at all --------------------------------------------------------------------------------
@pytest.mark.parametrize("strategy", ["cdi-cri", "cdi-annotations", "envvar,cdi-cri"])
def test_cdi_needs_a_system_that_can_have_gpus(node, strategy):
    node.up("none")
    plugin = node.start_plugin(f"--device-list-strategy={strategy}")
    assert plugin.process.wait(20) == 1
    errors = [line for line in plugin.log().splitlines() if " E " in line]
    assert len(errors) == 1, plugin.log()
    for word in ["device-list-strategy", "CDI", "NVML", "WSL", "Tegra"]:
        assert word in errors[0]


def test_a_system_without_driver_is_waited_for_where_that_is_asked(node):
    node.up("none")
    node.start_kubelet()
    plugin = node.start_plugin("--device-list-strategy=cdi-cri", "--fail-on-init-error=false")
    eventually(lambda: "error" in plugin.status()["driver"], "the driver was looked for")
    assert node.cdi() is None and node.resources() == {}
    assert BIN and plugin.process.poll() is None
