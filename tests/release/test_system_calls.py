"""What the shipped program asks of the kernel, as strace sees it."""

import contextlib
import pathlib
import re
import signal
import subprocess

import pytest
from simnode import BIN, GPU, Node, eventually

# Sockets, waiting for them, the clock, and memory.
ON_A_CALL = {"recvmsg", "sendmsg", "epoll_wait", "epoll_ctl", "epoll_pwait2", "timerfd_settime", "restart_syscall",
             "clock_nanosleep", "brk", "mmap", "mprotect", "munmap", "madvise"}  # fmt: skip
# Wake-ups between threads; what they are made on is looked at.
ON_EVENTS = {"read", "write"}
CALLS = 500


@contextlib.contextmanager
def traced(pid: int, out: pathlib.Path):
    """Every system call of a running program and its threads into `out`."""
    strace = subprocess.Popen(["strace", "-f", "-y", "-o", str(out), "-p", str(pid)],
                              stderr=subprocess.PIPE, text=True)  # fmt: skip
    assert strace.stderr is not None
    said = strace.stderr.readline()
    assert "attached" in said, f"strace: {said}{strace.stderr.read()}"
    yield
    strace.send_signal(signal.SIGINT)
    strace.communicate(timeout=60)


def system_calls(trace: pathlib.Path) -> dict[str, list[tuple[str, str]]]:
    """By thread: the name of each call, and its line."""
    threads: dict[str, list[tuple[str, str]]] = {}
    for line in trace.read_text(errors="replace").splitlines():
        if started := re.match(r"(\d+) +(\w+)\(", line):
            threads.setdefault(started[1], []).append((started[2], line))
    return threads


def serving_threads(trace: pathlib.Path) -> dict[str, list[tuple[str, str]]]:
    """Those that answered."""
    return {thread: calls for thread, calls in system_calls(trace).items()
            if sum(name == "sendmsg" for name, _ in calls) > CALLS // 10}  # fmt: skip


def everything(node: Node) -> list[str]:
    return ["--device-list-strategy=envvar,volume-mounts,cdi-annotations,cdi-cri", "--pass-device-specs",
            f"--driver-root={node.dir / 'root'}"]  # fmt: skip


@pytest.mark.parametrize("call", ["raw-allocate", "preferred"])
@pytest.mark.parametrize("options", [lambda node: [], everything], ids=["envvar", "every strategy"])
def test_a_call_touches_no_file_and_waits_for_no_lock(node, tmp_path, call, options):
    node.up("dgx-h100")
    node.start_kubelet()
    plugin = node.start_plugin(*options(node))
    node.wait_for(allocatable=8)
    ids = [device["id"] for device in node.resources()[GPU]["devices"]]
    wanted = {"raw-allocate": {"devices": ids[:2]}, "preferred": {"count": 4}}[call]
    trace = tmp_path / "trace"
    with traced(plugin.process.pid, trace):
        for _ in range(CALLS):
            node.do(call, resource=GPU, **wanted)
    assert plugin.stop() == 0

    threads = serving_threads(trace)
    assert threads, "no thread answered"
    calls = [entry for thread in threads.values() for entry in thread]
    assert sum(name == "sendmsg" for name, _ in calls) >= CALLS
    waits = [line for name, line in calls if name == "futex" and "_WAIT" in line]
    # gRPC's timer thread and the one that serves meet now and then. A lock of ours would be met on
    # every call by whatever holds it.
    assert len(waits) <= CALLS // 100, waits[:5]
    others = [line for name, line in calls
              if name not in ON_A_CALL | {"futex"} and not (name in ON_EVENTS and "anon_inode" in line)]  # fmt: skip
    assert not others, others[:5]


# The first calls of some kind: of malloc before main, of the loop, of threads, of gRPC.
FIRST_OF_A_KIND = ["getrandom", "eventfd2", "epoll_create1", "signalfd4", "timerfd_create", "inotify_init1",
                   "clone3", "socket", "bind", "listen", "accept4", "write", "rt_sigprocmask"]  # fmt: skip


@pytest.mark.parametrize("first", FIRST_OF_A_KIND)
def test_a_stop_in_the_first_milliseconds_is_a_stop(node, tmp_path, first):
    node.up("dgx-h100")
    node.start_kubelet()
    trace = tmp_path / "trace"
    done = subprocess.run(
        ["strace", "-f", "-o", str(trace), "-e", f"inject={first}:signal=TERM:when=1",
         str(BIN / "ndp"), "device-plugin", f"--driver-root-ctr-path={node.dir / 'root'}",
         f"--host-root={node.dir / 'root'}", f"--kubelet-socket={node.kubelet_dir / 'kubelet.sock'}"],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert f" {first}(" in trace.read_text(), "it makes no such call: the test needs another"
    assert done.returncode == 0, done.stderr
    assert not list(node.kubelet_dir.glob("nvidia-*.sock"))


def test_a_command_ends_by_the_signal(node):
    """Only the plugin reads signals; a command that waits for the driver can be ended."""
    node.up("dgx-h100", "--gpus", "1")
    node.sim("function", "--function", "nvmlInit_v2", "--hang")
    with subprocess.Popen(
        [str(BIN / "ndp"), "inventory", f"--driver-root-ctr-path={node.dir / 'root'}", f"--host-root={node.dir / 'root'}"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as command:  # fmt: skip
        eventually(lambda: node.calls().get("nvmlInit_v2"), "the hanging call is made")
        command.terminate()
        assert command.wait(timeout=30) == -signal.SIGTERM
