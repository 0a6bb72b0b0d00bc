"""Malformed `sharing`, `resources` and `devices` sections, each with what its one error must say.

A case is (text of the file behind `version: v1`, words). Key paths and lines are among the words,
and what would be right.
"""

# The file's first line is the version: the first line of a case is line 2.
SHARING = "sharing:\n  timeSlicing:\n"
ENTRY = SHARING + "    resources:\n    - "
PATH = "sharing.timeSlicing.resources[0]"


def entry(fields: str, *words: str) -> tuple[str, list[str]]:
    """A case whose only entry is at line 5."""
    return ENTRY + "{" + fields + "}\n", [*words, "line 5"]


# Wrong whatever the machine is.
MALFORMED = {
    "sharing is a number": ("sharing: 3\n", ["sharing (line 2)", "map"]),
    "time slicing is a list": ("sharing:\n  timeSlicing: [1]\n", ["sharing.timeSlicing (line 3)", "map"]),
    "mps is a text": ("sharing:\n  mps: yes please\n", ["sharing.mps (line 3)", "map"]),
    "resources is a map": (SHARING + "    resources: {a: 1}\n", ["sharing.timeSlicing.resources (line 4)", "list"]),
    "an entry is a text": (ENTRY + "nvidia.com/gpu\n", [f"{PATH} (line 5)", "name and replicas"]),
    "renameByDefault is a text": (SHARING + "    renameByDefault: maybe\n", ["timeSlicing.renameByDefault (line 4)", "true or false"]),
    "failRequestsGreaterThanOne is a number": (
        SHARING + "    failRequestsGreaterThanOne: 7\n", ["timeSlicing.failRequestsGreaterThanOne (line 4)", "true or false"]),
    "no name": entry("replicas: 4", PATH, "name: nvidia.com/gpu"),
    "no replicas": entry("name: gpu", PATH, "replicas", "1 or more"),
    "replicas is a text": entry("name: gpu, replicas: four", f"{PATH}.replicas", "four", "whole number"),
    "replicas is a fraction": entry("name: gpu, replicas: 2.5", f"{PATH}.replicas", "whole number"),
    "replicas is a list": entry("name: gpu, replicas: [4]", f"{PATH}.replicas", "whole number"),
    "replicas is zero": entry("name: gpu, replicas: 0", f"{PATH}.replicas", "0", "from 1"),
    "replicas is negative": entry("name: gpu, replicas: -2", f"{PATH}.replicas", "-2", "from 1"),
    "replicas is huge": entry("name: gpu, replicas: 99999999999", f"{PATH}.replicas", "99999999999", "100000"),
    "replicas is beyond all numbers": entry("name: gpu, replicas: 99999999999999999999999", f"{PATH}.replicas", "whole number"),
    "a bad name": entry("name: GPU, replicas: 2", f"{PATH}.name", '"GPU"', "lower case"),
    "a long name": entry(f"name: {'a' * 60}, replicas: 2", f"{PATH}.name", "71 characters", "63"),
    "a name of another vendor": entry("name: amd.com/gpu, replicas: 2", f"{PATH}.name", "amd.com/gpu", "lower case"),
    "a bad rename": entry("name: gpu, rename: Fast_GPU, replicas: 2", f"{PATH}.rename", "Fast_GPU", "lower case"),
    "an empty rename": entry('name: gpu, rename: "", replicas: 2', f"{PATH}.rename", "lower case"),
    "devices: some": entry("name: gpu, replicas: 2, devices: some", f"{PATH}.devices", "all, a count", "list"),
    "devices: 0": entry("name: gpu, replicas: 2, devices: 0", f"{PATH}.devices", "0 devices", "from 1"),
    "devices: -1": entry("name: gpu, replicas: 2, devices: -1", f"{PATH}.devices", "-1", "from 1"),
    "devices: a million": entry("name: gpu, replicas: 2, devices: 1000000", f"{PATH}.devices", "1000000", "4096"),
    "devices: an empty list": entry("name: gpu, replicas: 2, devices: []", f"{PATH}.devices", "empty", "all, a count"),
    "devices: a map": entry("name: gpu, replicas: 2, devices: {a: 1}", f"{PATH}.devices", "all, a count"),
    "devices: no device": entry("name: gpu, replicas: 2, devices: [first]", f"{PATH}.devices[0]", "first", "1:0"),
    "names is a list": ("resources: [a]\n", ["resources (line 2)", "map"]),
    "names of GPUs is a map": ("resources:\n  gpus: {a: 1}\n", ["resources.gpus (line 3)", "list"]),
    "a rule is a text": ("resources:\n  gpus: [a100]\n", ["resources.gpus[0] (line 3)", "pattern and name"]),
    "a rule without pattern": ("resources:\n  gpus:\n  - {name: a100}\n", ["resources.gpus[0] (line 4)", "pattern", "*A100*"]),
    "a rule with an empty pattern": ('resources:\n  mig:\n  - {pattern: "", name: a}\n', ["resources.mig[0].pattern (line 4)", "empty"]),
    "a rule without name": ('resources:\n  gpus:\n  - {pattern: "*"}\n', ["resources.gpus[0] (line 4)", "name", "nvidia.com/a100"]),
    "a rule with a bad name": (
        'resources:\n  gpus:\n  - {pattern: "*", name: A_100}\n', ["resources.gpus[0].name (line 4)", "A_100", "lower case"]),
    "devices is a list": ("devices: [0]\n", ["devices (line 2)", "map"]),
    "include is a map": ("devices:\n  include: {a: 1}\n", ["devices.include (line 3)", "list"]),
    "a selector selects nothing": ("devices:\n  exclude: [some]\n", ["devices.exclude[0] (line 3)", "some", "index", "wildcard"]),
    "a selector is a MIG device": ('devices:\n  exclude: ["0:1"]\n', ["devices.exclude[0] (line 3)", "0:1", "whole GPU"]),
    "a selector is negative": ("devices:\n  include: [-1]\n", ["devices.include[0] (line 3)", "-1", "index"]),
    "a selector is empty": ("devices:\n  include: [{}]\n", ["devices.include[0] (line 3)", "minMemory"]),
    "a selector is a list": ("devices:\n  include: [[0]]\n", ["devices.include[0] (line 3)"]),
    "no amount of memory": (
        "devices:\n  include: [{minMemory: lots}]\n", ["devices.include[0].minMemory (line 3)", "lots", "40Gi"]),
    "no bus id": (
        "devices:\n  exclude: [{pciBusId: slot7}]\n", ["devices.exclude[0].pciBusId (line 3)", "slot7", "0000:07:00.0"]),
    "one selector twice": (
        "devices:\n  exclude: [0, GPU-1, 0]\n", ["devices.exclude[0] (line 3)", "devices.exclude[2] (line 3)", "same"]),
    "included and excluded": (
        "devices:\n  include: [3]\n  exclude: [3]\n", ["devices.include[0] (line 3)", "devices.exclude[0] (line 4)", "same"]),
}

TWO = ENTRY + "{%s}\n    - {%s}\n"
SECOND = "sharing.timeSlicing.resources[1]"

# Wrong on a machine with two T4 (0, 1) and two A100 (2, 3), with resource naming.
CONTRADICTIONS = {
    "a device in two entries": (
        TWO % ("name: gpu, rename: a, replicas: 2, devices: [1]", "name: gpu, rename: b, replicas: 2, devices: [1]"),
        [f"{PATH}.devices[0] (line 5)", f"{SECOND}.devices[0] (line 6)", "one entry only"]),
    "everything in two entries": (
        TWO % ("name: gpu, rename: a, replicas: 2", "name: gpu, rename: b, replicas: 2"),
        [f"{PATH} (line 5)", f"{SECOND} (line 6)", "both take all devices"]),
    "two numbers of replicas under one name": (
        TWO % ("name: gpu, rename: a, replicas: 2, devices: [0]", "name: gpu, rename: a, replicas: 3, devices: [1]"),
        [f"{PATH} (line 5)", f"{SECOND} (line 6)", "2 and 3", "one number"]),
    "one pattern twice": (
        'resources:\n  gpus:\n  - {pattern: "*T4*", name: a}\n  - {pattern: "*T4*", name: b}\n',
        ["resources.gpus[0] (line 4)", "resources.gpus[1] (line 5)", "first match wins"]),
    "an index that is not there": (
        ENTRY + "{name: gpu, replicas: 2, devices: [9]}\n", [f"{PATH}.devices[0] (line 5)", "9 is no device", "3 (GPU-"]),
    "a UUID that is not there": (
        ENTRY + "{name: gpu, replicas: 2, devices: [GPU-nobody]}\n", [f"{PATH}.devices[0] (line 5)", "GPU-nobody", "3 (GPU-"]),
    "a MIG index without MIG": (
        ENTRY + '{name: gpu, replicas: 2, devices: ["0:0"]}\n', [f"{PATH}.devices[0] (line 5)", "0:0 is no device"]),
    "more devices than there are": (
        ENTRY + "{name: gpu, replicas: 2, devices: 5}\n", [f"{PATH}.devices (line 5)", "5 devices", "at most 4"]),
    "one GPU by two names": (
        TWO % ("name: gpu, rename: a, replicas: 2, devices: [0]",
               'name: gpu, rename: b, replicas: 2, devices: ["0000:3b:00.0"]'),
        [f"{PATH} (line 5)", f"{SECOND} (line 6)", "both name device 0 (GPU-", "one entry only"]),
    "a list that the kubelet does not take": (
        ENTRY + "{name: gpu, replicas: 100000}\n",
        [f"{PATH} (line 5)", "100000 replicas", "nvidia.com/gpu", "4194304", "at most"]),
}
