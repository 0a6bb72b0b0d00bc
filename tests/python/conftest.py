"""A simulated machine per test, used through NVIDIA's own Python bindings.

The program under test lies in the folder that NDP_BIN_DIR names (build/dev/bin by default).
"""

import json
import os
import pathlib
import subprocess
import textwrap

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("NDP_BIN_DIR", ROOT / "build/dev/bin"))

PROLOGUE = """
import json, os, subprocess, time
import pynvml

PROGRAM, DIR = {program!r}, {dir!r}

def sim(command, *arguments):
    subprocess.run([PROGRAM, *command.split(), "--dir", DIR, *map(str, arguments)], check=True)

def tried(call, *arguments):
    try:
        return call(*arguments)
    except pynvml.NVMLError as error:
        return {{"error": error.value}}

def gpu(index):
    return pynvml.nvmlDeviceGetHandleByIndex(index)
"""


class Machine:
    """One folder of ndp-sim."""

    program = BIN / "ndp-sim"

    def __init__(self, folder):
        self.dir = folder

    def run(self, command, *arguments):
        return subprocess.run(
            [self.program, *command.split(), "--dir", self.dir, *map(str, arguments)],
            check=True, capture_output=True, text=True, timeout=60).stdout

    def json(self, command, *arguments):
        return json.loads(self.run(command, *arguments, "--json"))

    @property
    def libraries(self):
        """The folder of libnvidia-ml.so.1; some profiles put the driver into a folder of theirs."""
        return next((self.dir / "root").rglob("libnvidia-ml.so.1")).parent

    def client(self, code):
        """Runs Python code in a process of its own, with the machine's driver on the library path.

        NVML is initialised around it. `sim("fault", "--gpu", 3, ...)` changes the machine under the
        open session, `tried(call, *arguments)` is the call's result or its error's number. Whatever
        the code leaves in `result` comes back. A process each, since a library that has been loaded
        under a name stays loaded.
        """
        program = (PROLOGUE.format(program=str(self.program), dir=str(self.dir)) +
                   "pynvml.nvmlInit()\n" + textwrap.dedent(code) +
                   "\npynvml.nvmlShutdown()\nprint(json.dumps(result))\n")
        environment = dict(os.environ, LD_LIBRARY_PATH=str(self.libraries))
        done = subprocess.run(
            [os.sys.executable, "-c", program], check=False, capture_output=True, text=True,
            timeout=60, env=environment)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


@pytest.fixture
def up(tmp_path):
    def make(profile, *arguments):
        machine = Machine(tmp_path / profile)
        machine.run("up", "--profile", profile, *arguments)
        return machine
    return make
