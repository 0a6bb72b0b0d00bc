"""nvidia-ml-py sees the machine that the profile describes."""

import collections
import pathlib
import subprocess

import pynvml
import pytest
import yaml

PROFILES = pathlib.Path(__file__).resolve().parents[2] / "sim/profiles"

LIST_GPUS = """
result = []
handles = [pynvml.nvmlDeviceGetHandleByIndex(i) for i in range(pynvml.nvmlDeviceGetCount())]
for handle in handles:
    pci = pynvml.nvmlDeviceGetPciInfo(handle)
    try:
        mig = pynvml.nvmlDeviceGetMigMode(handle)
    except pynvml.NVMLError_NotSupported:
        mig = None
    links = []
    for link in range(pynvml.NVML_NVLINK_MAX_LINKS):
        try:
            assert pynvml.nvmlDeviceGetNvLinkState(handle, link)
        except pynvml.NVMLError_NotSupported:
            continue
        remote = pynvml.nvmlDeviceGetNvLinkRemotePciInfo(handle, link)
        links.append([pynvml.nvmlDeviceGetNvLinkRemoteDeviceType(handle, link), remote.busId])
    result.append({
        "index": pynvml.nvmlDeviceGetIndex(handle),
        "name": pynvml.nvmlDeviceGetName(handle),
        "uuid": pynvml.nvmlDeviceGetUUID(handle),
        "minor": pynvml.nvmlDeviceGetMinorNumber(handle),
        "bus": pci.busId,
        "pci": [pci.pciDeviceId, pci.pciSubSystemId],
        "memory": pynvml.nvmlDeviceGetMemoryInfo(handle).total,
        "memory2": pynvml.nvmlDeviceGetMemoryInfo(handle, version=pynvml.nvmlMemory_v2).total,
        "capability": pynvml.nvmlDeviceGetCudaComputeCapability(handle),
        "mig": mig,
        "links": links,
        "levels": [pynvml.nvmlDeviceGetTopologyCommonAncestor(handle, other) for other in handles],
    })
"""


def gpus_of(profile):
    """What the profile's text says, one entry per GPU, its NUMA node last."""
    return [(gpu, address, numa) for gpu in profile["gpus"]
            for address, numa in zip(gpu["pci"], gpu.get("numa", [-1] * len(gpu["pci"])))]


def bus_id(address):
    parts = address.split(":")
    domain = parts[0] if len(parts) == 3 else "0"
    return f"{int(domain, 16):08X}:{parts[-2]}:{parts[-1]}.0"


def links_of(profile, index):
    """The number of links of a GPU by the other end's PCI bus id; those to switches under None."""
    links = profile.get("links", {})
    counts = collections.Counter({None: links.get("nvswitch", 0)})
    for a, b, count in links.get("pairs", []):
        for one, other in ((a, b), (b, a)):
            if one == index:
                counts[bus_id(gpus_of(profile)[other][1])] += count
    return +counts


def level(profile, a, b):
    """Where the PCIe paths of two GPUs meet, as NVML numbers it."""
    groups = profile.get("switchGroups", [])
    if a == b:
        return 0
    if groups and groups[a] == groups[b]:
        return 10
    if gpus_of(profile)[a][2] != gpus_of(profile)[b][2]:
        return 50
    return 30 if groups else 40


def read(name):
    return yaml.safe_load((PROFILES / f"{name}.yaml").read_text())


NAMES = sorted(file.stem for file in PROFILES.glob("*.yaml"))


@pytest.mark.parametrize("name", [name for name in NAMES if read(name)["gpus"]])
def test_lists_what_the_profile_says(up, name):
    machine = up(name)
    profile = read(name)
    gpus = gpus_of(profile)
    status = machine.json("status")["gpus"]
    seen = machine.client(LIST_GPUS)
    assert len(seen) == len(gpus) == len(status)
    for index, ((gpu, address, _), found) in enumerate(zip(gpus, seen)):
        assert found["name"] == gpu["name"]
        assert found["uuid"] == status[index]["uuid"]
        assert found["index"] == found["minor"] == index
        assert found["bus"] == bus_id(address)
        assert found["pci"] == [gpu["pciId"], gpu.get("subsystemId", 0)]
        assert found["memory"] == found["memory2"] == gpu["memoryMiB"] * 1024 * 1024
        assert found["capability"] == [int(n) for n in gpu["computeCapability"].split(".")]
        assert found["mig"] == ([0, 0] if "mig" in gpu else None)
        links = collections.Counter(
            None if kind == pynvml.NVML_NVLINK_DEVICE_TYPE_SWITCH else bus
            for kind, bus in found["links"])
        assert links == links_of(profile, index)
        assert found["levels"] == [level(profile, index, other) for other in range(len(gpus))]


@pytest.mark.parametrize("name", [name for name in NAMES if not read(name)["gpus"]])
def test_without_nvml_there_is_no_library(up, name):
    # WSL's driver store holds a file of that name, but no loader looks there.
    assert list((up(name).dir / "root/usr/lib").glob("*-linux-gnu/libnvidia-ml.so*")) == []


def test_the_program_knows_every_profile(up):
    listed = subprocess.run([up("none").program, "profiles"], check=True, capture_output=True, text=True)
    assert sorted(line.split()[0] for line in listed.stdout.splitlines()) == NAMES


def test_uuids_are_the_same_in_every_run(up, tmp_path):
    first = up("dgx-h100").client(LIST_GPUS)
    (tmp_path / "again").mkdir()
    again = up("dgx-h100", "--gpus", 8).client(LIST_GPUS)
    assert [gpu["uuid"] for gpu in first] == [gpu["uuid"] for gpu in again]


LIST_MIG = """
result = []
parent = pynvml.nvmlDeviceGetHandleByIndex(0)
for i in range(pynvml.nvmlDeviceGetMaxMigDeviceCount(parent)):
    try:
        mig = pynvml.nvmlDeviceGetMigDeviceHandleByIndex(parent, i)
    except pynvml.NVMLError_NotFound:
        result.append(None)
        continue
    attributes = pynvml.nvmlDeviceGetAttributes(mig)
    result.append({
        "uuid": pynvml.nvmlDeviceGetUUID(mig),
        "name": pynvml.nvmlDeviceGetName(mig),
        "gi": pynvml.nvmlDeviceGetGpuInstanceId(mig),
        "ci": pynvml.nvmlDeviceGetComputeInstanceId(mig),
        "memory": attributes.memorySizeMB,
        "slices": [attributes.gpuInstanceSliceCount, attributes.computeInstanceSliceCount],
        "parent": pynvml.nvmlDeviceGetIndex(
            pynvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(mig)),
    })
"""


def test_lists_mig_devices_with_gaps_and_shared_instances(up):
    machine = up("dgx-h100")
    machine.run("mig", "--gpu", 0, "--mode", "on", "--profiles", "3g.40gb,-,1c.2g.20gb*2,1g.10gb+me")
    seen = machine.client(LIST_MIG)
    assert [entry and entry["name"].split(" MIG ")[1] for entry in seen] == [
        "3g.40gb", None, "1c.2g.20gb", "1c.2g.20gb", "1g.10gb+me", None, None]
    assert [entry["slices"] for entry in seen if entry] == [[3, 3], [2, 1], [2, 1], [1, 1]]
    assert seen[2]["gi"] == seen[3]["gi"] and seen[2]["ci"] != seen[3]["ci"]
    expected = {gpu["index"]: gpu["uuid"] for gpu in machine.json("status")["gpus"][0]["mig"]}
    assert {i: entry["uuid"] for i, entry in enumerate(seen) if entry} == expected


def test_an_xid_reaches_a_waiting_client(up):
    machine = up("dgx-h100")
    seen = machine.client(f"""
import subprocess
handle = pynvml.nvmlDeviceGetHandleByIndex(3)
events = pynvml.nvmlEventSetCreate()
pynvml.nvmlDeviceRegisterEvents(handle, pynvml.nvmlEventTypeXidCriticalError, events)
sent = subprocess.Popen([{str(machine.program)!r}, "fault", "--dir", {str(machine.dir)!r},
                         "--gpu", "3", "--xid", "79", "--gi", "2", "--ci", "0"])
event = pynvml.nvmlEventSetWait_v2(events, 30000)
sent.wait()
result = [event.eventData, event.gpuInstanceId, event.computeInstanceId,
          pynvml.nvmlDeviceGetUUID(event.device) == pynvml.nvmlDeviceGetUUID(handle)]
""")
    assert seen == [79, 2, 0, True]


def test_calls_name_the_client(up):
    machine = up("pcie-t4")
    machine.client("result = pynvml.nvmlDeviceGetCount()")
    calls = machine.json("calls")
    assert calls["calls"]["nvmlDeviceGetCount_v2"] == 1
    assert [client["alive"] for client in calls["clients"]] == [False]
    assert calls["clients"][0]["command"].startswith("python")
