"""What each control of ndp-sim does to a client whose session is open.

A client sees a change as soon as the command that made it has returned: every look here follows its
command at once.
"""

import pytest

LOST, NOT_SUPPORTED, NO_PERMISSION, UNKNOWN = 15, 3, 4, 999
UNINITIALIZED, DRIVER_NOT_LOADED, VERSION_MISMATCH, FUNCTION_NOT_FOUND = 1, 9, 18, 13


def error(number):
    return {"error": number}


# What health checks read of a GPU, in one go.
READ = """
def read(index):
    handle = gpu(index)
    field = pynvml.nvmlDeviceGetFieldValues(handle, [230])[0]
    fabric = pynvml.c_nvmlGpuFabricInfo_v2_t()
    pynvml.nvmlDeviceGetGpuFabricInfoV(handle, pynvml.byref(fabric))
    processes = tried(pynvml.nvmlDeviceGetComputeRunningProcesses, handle)
    utilization = tried(pynvml.nvmlDeviceGetUtilizationRates, handle)
    return {
        "recovery-action": field.value.uiVal if field.nvmlReturn == 0 else {"error": field.nvmlReturn},
        "temperature": tried(pynvml.nvmlDeviceGetTemperature, handle, 0),
        "thresholds": [tried(pynvml.nvmlDeviceGetTemperatureThreshold, handle, k) for k in range(4)],
        "remapped": tried(pynvml.nvmlDeviceGetRemappedRows, handle),
        "retired-pending": tried(pynvml.nvmlDeviceGetRetiredPagesPendingStatus, handle),
        "ecc": [[tried(pynvml.nvmlDeviceGetTotalEccErrors, handle, kind, counter)
                 for counter in (0, 1)] for kind in (0, 1)],
        "pcie-replay": tried(pynvml.nvmlDeviceGetPcieReplayCounter, handle),
        "compute-mode": tried(pynvml.nvmlDeviceGetComputeMode, handle),
        "fabric": [fabric.state, fabric.healthMask],
        "event-types": tried(pynvml.nvmlDeviceGetSupportedEventTypes, handle),
        "memory-used": pynvml.nvmlDeviceGetMemoryInfo(handle, pynvml.nvmlMemory_v2).used >> 20,
        "power": tried(pynvml.nvmlDeviceGetPowerUsage, handle),
        "utilization": utilization.gpu,
        "processes": [[p.pid, p.usedGpuMemory >> 20, p.gpuInstanceId, p.computeInstanceId]
                      for p in processes],
    }
"""

# Options of `set`, and what a client reads afterwards.
SET = [
    (["--recovery-action", 4], {"recovery-action": 4}),
    (["--recovery-action", -1], {"recovery-action": error(NOT_SUPPORTED)}),
    (["--temperature", 91], {"temperature": 91}),
    (["--temperature", -1], {"temperature": error(NOT_SUPPORTED)}),
    (["--threshold", "shutdown=80", "--threshold", "slowdown=70", "--threshold", "memory-max=60",
      "--threshold", "gpu-max=50"], {"thresholds": [80, 70, 60, 50]}),
    (["--remap-correctable", 3, "--remap-uncorrectable", 2, "--remap-pending", 1],
     {"remapped": [3, 2, 1, 0]}),
    (["--remap-failure", 1], {"remapped": [3, 2, 1, 1]}),
    (["--no-remap"], {"remapped": error(NOT_SUPPORTED)}),
    (["--retired-pending", 1], {"retired-pending": 1}),
    (["--ecc-corrected", 5], {"ecc": [[5, 5], [0, 0]]}),
    (["--ecc-uncorrected", 7], {"ecc": [[5, 5], [7, 7]]}),
    (["--pcie-replay", 9], {"pcie-replay": 9}),
    (["--compute-mode", "exclusive"], {"compute-mode": 3}),
    (["--compute-mode", "prohibited"], {"compute-mode": 2}),
    (["--fabric", "in-progress", "--fabric-health", 3], {"fabric": [2, 3]}),
    (["--event-types", 9], {"event-types": 9}),
    (["--memory-used", 1000], {"memory-used": 1000}),
    (["--power", 350000], {"power": 350000}),
    (["--utilization", 75], {"utilization": 75}),
    (["--process", "4242:1024", "--process", "4243:512:2:0"],
     {"processes": [[4242, 1024, 0xFFFFFFFF, 0xFFFFFFFF], [4243, 512, 2, 0]]}),
    (["--no-process"], {"processes": []}),
]


def test_what_is_set_is_read_at_once_and_of_that_gpu_only(up):
    seen = up("dgx-h100").client(READ + f"""
result = [[read(2), read(3)]]
for arguments in {[arguments for arguments, _ in SET]!r}:
    sim("set", "--gpu", 2, *arguments)
    result.append([read(2), read(3)])
""")
    wanted, neighbour = dict(seen[0][0]), seen[0][1]
    for (arguments, change), (found, beside) in zip(SET, seen[1:], strict=True):
        assert any(wanted[key] != value for key, value in change.items()), f"{arguments} sets nothing new"
        wanted |= change
        assert found == wanted, arguments
        assert beside == neighbour, arguments


# By the names that `fault --event` takes.
EVENTS = {"sbe": 0x1, "dbe": 0x2, "sbe-storm": 0x200, "dram-retirement": 0x400,
          "dram-retirement-failure": 0x800, "poison": 0x1000, "fatal-poison": 0x2000,
          "unavailable": 0x4000, "recovery-action": 0x8000, "xid": 0x8, "0x40": 0x40}


def test_events_of_every_type_arrive_at_once_with_their_data(up):
    seen = up("dgx-h100").client(f"""
sim("set", "--gpu", 1, "--event-types", 0xFFFF)
events = pynvml.nvmlEventSetCreate()
pynvml.nvmlDeviceRegisterEvents(gpu(1), 0xFFFF, events)

def take():
    event = tried(pynvml.nvmlEventSetWait_v2, events, 0)  # what is there now
    if isinstance(event, dict):
        return event
    return [pynvml.nvmlDeviceGetIndex(event.device), event.eventType, event.eventData,
            event.gpuInstanceId, event.computeInstanceId]

result = []
for name in {list(EVENTS)!r}:
    sim("fault", "--gpu", 1, "--event", name, "--data", 7, "--gi", 2, "--ci", 1, "--count", 2)
    result += [take(), take(), take()]
sim("fault", "--gpu", 1, "--event", "dbe")
result.append(take())
sim("fault", "--gpu", 0, "--event", "dbe")  # nobody has registered for that GPU
result.append(take())
""")
    none, nowhere = error(10), 0xFFFFFFFF
    wanted = []
    for kind in EVENTS.values():
        wanted += [[1, kind, 7, 2, 1]] * 2 + [none]
    assert seen == [*wanted, [1, 0x2, 0, nowhere, nowhere], none]


def test_init_fails_from_the_nth_call_until_told_otherwise(up):
    seen = up("pcie-t4").client("""
sim("init", "--error", "unknown", "--from-call", 3)
result = [tried(pynvml.nvmlInit) for _ in range(4)]
sim("init", "--error", 20)
result.append(tried(pynvml.nvmlInit))
sim("init", "--ok")
result.append(tried(pynvml.nvmlInit))
result.append(pynvml.nvmlDeviceGetCount())
""")
    assert seen == [None, None, error(UNKNOWN), error(UNKNOWN), error(20), None, 4]


def test_init_fails_for_as_long_as_told(up):
    seconds, errors = up("pcie-t4").client("""
begin = time.monotonic()
sim("init", "--error", "driver-not-loaded", "--for", "1s")
errors = []
while (error := tried(pynvml.nvmlInit)) is not None:
    errors.append(error["error"])
    time.sleep(0.01)
result = [time.monotonic() - begin, sorted(set(errors))]
""")
    assert errors == [DRIVER_NOT_LOADED]
    assert seconds >= 1


def test_a_module_of_another_version_fails_new_sessions(up):
    seen = up("pcie-t4").client("""
sim("init", "--version-mismatch")
result = [tried(pynvml.nvmlDeviceGetCount)]
pynvml.nvmlShutdown()
result.append(tried(pynvml.nvmlInit))
sim("init", "--ok")
result.append(tried(pynvml.nvmlInit))
""")
    assert seen == [4, error(VERSION_MISMATCH), None]


FUNCTION = """
memory = lambda index: tried(lambda: pynvml.nvmlDeviceGetMemoryInfo(handles[index]).total >> 20)
def timed(index):
    begin = time.monotonic()
    memory(index)
    return time.monotonic() - begin
handles = [gpu(index) for index in range(4)]
result = []
"""


def test_a_function_of_one_gpu_fails_as_told(up):
    seen = up("pcie-t4").client(FUNCTION + """
for what in (["--error", "gpu-is-lost"], ["--error", 3], ["--missing"], ["--ok"]):
    sim("function", "--function", "nvmlDeviceGetMemoryInfo", "--gpu", 1, *what)
    result.append([memory(0), memory(1)])
sim("function", "--function", "all", "--error", "unknown")
result.append([memory(0), tried(pynvml.nvmlDeviceGetName, handles[1])])
sim("clear")
result.append([memory(0), memory(1)])
""")
    whole = 15360
    assert seen == [[whole, error(LOST)], [whole, error(NOT_SUPPORTED)],
                    [whole, error(FUNCTION_NOT_FOUND)], [whole, whole],
                    [error(UNKNOWN), error(UNKNOWN)], [whole, whole]]


def test_a_function_is_slow_or_fails_for_a_while(up):
    slow, seconds, last = up("pcie-t4").client(FUNCTION + """
sim("function", "--function", "nvmlDeviceGetMemoryInfo", "--gpu", 1, "--latency", "300ms")
slow = timed(1)
sim("function", "--function", "nvmlDeviceGetMemoryInfo", "--ok")
begin = time.monotonic()
sim("function", "--function", "nvmlDeviceGetMemoryInfo", "--error", "unknown", "--for", "500ms")
while isinstance(last := memory(1), dict):
    time.sleep(0.01)
result = [slow, time.monotonic() - begin, last]
""")
    assert slow >= 0.3
    assert seconds >= 0.5
    assert last == 15360


def test_a_gpus_state_is_seen_at_once(up):
    seen = up("dgx-h100").client("""
name = lambda index: tried(pynvml.nvmlDeviceGetName, handles[index])
handles = [gpu(index) for index in range(8)]
result = []
for state in ("lost", "reset-required", "ok"):
    sim("gpu", "--gpu", 5, "--state", state)
    result.append([name(4), name(5)])
sim("gpu", "--gpu", 5, "--remove")
result.append([name(4), name(5)])
""")
    good = "NVIDIA H100 80GB HBM3"
    assert seen == [[good, error(LOST)], [good, error(16)], [good, good], [good, error(LOST)]]


ORDER = """
def minors():
    pynvml.nvmlShutdown()
    pynvml.nvmlInit()
    return [pynvml.nvmlDeviceGetMinorNumber(gpu(i)) for i in range(pynvml.nvmlDeviceGetCount())]
"""


def test_the_next_session_enumerates_what_is_there_in_the_order_told(up):
    seen = up("pcie-t4").client(ORDER + """
result = []
sim("gpu", "--order", "3,1,0,2")
result.append(minors())
sim("gpu", "--gpu", 1, "--remove")
result.append(minors())
sim("gpu", "--gpu", 1, "--add")
result.append(minors())
sim("gpu", "--order", "0,1,2,3")
result.append(minors())
""")
    assert seen[0] == [3, 1, 0, 2]
    assert seen[1] == [3, 0, 2]
    assert sorted(seen[2]) == seen[3] == [0, 1, 2, 3]


def test_mig_controls_are_seen_by_the_next_session(up):
    seen = up("dgx-h100").client("""
def look():
    pynvml.nvmlInit()
    mode = tried(pynvml.nvmlDeviceGetMigMode, gpu(0))
    slots = []
    for slot in range(pynvml.nvmlDeviceGetMaxMigDeviceCount(gpu(0)) if mode == [1, 1] else 0):
        mig = tried(pynvml.nvmlDeviceGetMigDeviceHandleByIndex, gpu(0), slot)
        slots.append(None if isinstance(mig, dict) else pynvml.nvmlDeviceGetGpuInstanceId(mig))
    pynvml.nvmlShutdown()
    return [mode, slots]

result = []
pynvml.nvmlShutdown()
for command in (["mig", "--gpu", 0, "--pending", "on"], ["reset", "--gpu", 0],
                ["mig", "--gpu", 0, "--profiles", "3g.40gb,1g.10gb*2"],
                ["mig", "--gpu", 0, "--destroy", 11],
                ["mig", "--gpu", 0, "--permission", "off"],
                ["mig", "--gpu", 0, "--permission", "on"],
                ["mig", "--gpu", 0, "--mode", "off"]):
    sim(*command)
    result.append(look())
pynvml.nvmlInit()
""")
    empty = [None] * 7
    assert seen == [
        [[0, 1], []], [[1, 1], empty], [[1, 1], [1, 11, 12, *empty[:4]]],
        [[1, 1], [1, None, 12, *empty[:4]]], [error(NO_PERMISSION), []],
        [[1, 1], [1, None, 12, *empty[:4]]], [[0, 0], []]]


@pytest.mark.parametrize("status", [DRIVER_NOT_LOADED, UNINITIALIZED])
def test_a_driver_that_goes_ends_sessions_with_that_status(up, status):
    seen = up("pcie-t4").client(f"""
sim("driver gone", "--status", {status})
result = [tried(pynvml.nvmlDeviceGetCount), tried(pynvml.nvmlInit)]
sim("driver back")
result.append(tried(pynvml.nvmlDeviceGetCount))
pynvml.nvmlShutdown()
pynvml.nvmlInit()
result.append(pynvml.nvmlDeviceGetCount())
""")
    assert seen == [error(status), error(DRIVER_NOT_LOADED), error(UNINITIALIZED), 4]


def test_a_reboot_ends_sessions_and_leaves_fresh_counters(up):
    seen = up("dgx-h100").client("""
sim("set", "--gpu", 0, "--ecc-uncorrected", 4, "--pcie-replay", 2)
sim("boot")
result = [tried(pynvml.nvmlDeviceGetCount)]
pynvml.nvmlShutdown()
pynvml.nvmlInit()
result += [pynvml.nvmlDeviceGetTotalEccErrors(gpu(0), 1, counter) for counter in (0, 1)]
result.append(pynvml.nvmlDeviceGetPcieReplayCounter(gpu(0)))
""")
    assert seen == [error(UNINITIALIZED), 0, 4, 0]


def test_seed_and_size_make_another_machine(up):
    uuids = "result = [pynvml.nvmlDeviceGetUUID(gpu(i)) for i in range(pynvml.nvmlDeviceGetCount())]"
    first = up("dgx-h100").client(uuids)
    again = up("dgx-h100", "--gpus", 3).client(uuids)
    other = up("dgx-h100", "--seed", "rack 7").client(uuids)
    assert again == first[:3]
    assert len(set(first + other)) == 16


def test_calls_tell_who_called_what(up):
    machine = up("pcie-t4")
    ours, theirs = (machine.client(f"""
for _ in range({count}):
    pynvml.nvmlDeviceGetCount()
result = os.getpid()
""") for count in (2, 3))
    name = "nvmlDeviceGetCount_v2"
    calls = machine.json("calls")
    assert calls["calls"][name] == 5
    assert {client["pid"]: client["calls"][name] for client in calls["clients"]} == {ours: 2, theirs: 3}
    only = machine.json("calls", "--function", name)
    assert only["calls"] == {name: 5}
    assert machine.json("calls", "--function", "nvmlDeviceGetBrand")["calls"] == {"nvmlDeviceGetBrand": 0}
    line = next(line for line in machine.run("calls").splitlines() if line.startswith(name))
    assert f"[{ours}] 2" in line and f"[{theirs}] 3" in line
    machine.run("calls", "--reset")
    assert machine.json("calls")["calls"] == {}


def test_calls_and_sessions_of_a_living_client(up):
    seen = up("pcie-t4").client("""
def ask(command):
    done = subprocess.run([PROGRAM, command, "--dir", DIR, "--json"], check=True, capture_output=True)
    return json.loads(done.stdout)
events = pynvml.nvmlEventSetCreate()
pynvml.nvmlInit()
result = [os.getpid(), ask("sessions"), [c["alive"] for c in ask("calls")["clients"]]]
pynvml.nvmlShutdown()
pynvml.nvmlShutdown()
result.append(ask("sessions"))
pynvml.nvmlInit()
""")
    pid, (session,), alive, after = seen
    assert alive == [True]
    assert after == []
    assert session["pid"] == pid and session["command"].startswith("python")
    assert (session["references"], session["eventSets"]) == (2, 1)
    assert session["gpus"] == [0, 1, 2, 3]
