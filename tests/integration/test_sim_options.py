"""What ndp-sim says to options that are wrong: one line that names the sub-command and the option."""

import subprocess

import pytest
from simnode import BIN


def told(*args):
    done = subprocess.run([str(BIN / "ndp-sim"), *args], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2 and done.stdout == "" and done.stderr.count("\n") == 1, done
    return done.stderr


@pytest.mark.parametrize("args, words", [
    (["fault", "--dir", "D", "--gpu", "0", "--xid", "abc"],
     'ndp-sim fault: --xid: "abc" must be a number from 0 to 18446744073709551615'),
    (["set", "--dir", "D", "--gpu", "0", "--temperature", "hot"], 'ndp-sim set: --temperature: "hot" must be a number'),
    (["fault", "--dir", "D", "--gpu", "0", "--xid", "79", "--count", "0"], "ndp-sim fault: --count: "),
    (["driver", "gone"], "ndp-sim driver gone: --dir is required"),
    (["status"], "ndp-sim status: --dir is required"),
    (["up", "--dir", "D", "--profile", "./mine.yaml"],
     "ndp-sim up: ./mine.yaml: cannot be read as a profile: No such file or directory"),
])  # fmt: skip
def test_the_line_names_what_is_wrong(args, words):
    assert told(*args).startswith(words)


def test_the_folder_may_come_before_or_after_what_the_driver_does(node):
    node.up("pcie-t4")
    for args in (["driver", "--dir", node.dir, "gone"], ["driver", "back", "--dir", node.dir]):
        subprocess.run([str(BIN / "ndp-sim"), *map(str, args)], check=True, timeout=60)
