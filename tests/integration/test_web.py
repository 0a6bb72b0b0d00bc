"""/livez, /readyz, /metrics and /status.json, on a port and on a unix socket; off by default."""

import pathlib
import re
import socket
import urllib.error
import urllib.request

from simnode import GPU, eventually, open_files


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def fetch(port, path):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_over_tcp(node):
    node.up("dgx-h100", "--gpus", "2")
    node.start_kubelet()
    port = free_port()
    node.start_plugin(f"--listen-address=127.0.0.1:{port}")
    eventually(lambda: fetch(port, "/readyz")[0] == 200, "ready")
    assert fetch(port, "/livez")[0] == 200
    assert '"resources"' in fetch(port, "/status.json")[1]
    assert fetch(port, "/nothing-here")[0] == 404
    assert "<html" in fetch(port, "/")[1].lower()


def test_off_by_default(node):
    node.up("dgx-h100", "--gpus", "1")
    node.start_kubelet()
    plugin = node.start_plugin("--listen-address=")
    node.wait_for(allocatable=1)
    own = set(open_files(plugin))
    for table in ("tcp", "tcp6"):
        rows = [line.split() for line in pathlib.Path(f"/proc/net/{table}").read_text().splitlines()[1:]]
        assert not [row for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in own]
    assert not plugin.web.exists()


def test_status_tells_devices_verdicts_and_registrations(node):
    plugin = node.serve("dgx-h100")
    # The kubelet asks for the list before it has answered Register.
    eventually(lambda: plugin.status()["resources"][0]["registration"]["registered"], "registered")
    status = plugin.status()
    assert status["version"].startswith("ndp ") and status["driver"]["open"] is True
    assert status["driver"]["version"] == "570.86.15" and status["driver"]["platform"] == "nvml"
    gpu = status["gpus"][3]
    assert {"index", "uuid", "name", "pciBusId", "minor", "numaNode", "memoryMiB", "computeCapability"} <= set(gpu)
    resource = status["resources"][0]
    assert (resource["name"], resource["capacity"], resource["healthy"]) == (GPU, 8, 8)
    registration = resource["registration"]
    assert registration["streams"] == 1
    assert re.fullmatch(r"nvidia-gpu-[0-9a-f]{8}\.sock", registration["endpoint"])
    assert (node.kubelet_dir / registration["endpoint"]).is_socket()


def test_metrics_are_prometheus_text(node):
    plugin = node.serve("dgx-h100")
    node.allocate(1)
    text = plugin.get("/metrics")[1]
    for line in text.splitlines():
        assert re.fullmatch(r"# (HELP|TYPE) \w+ .+|\w+(\{[^}]*\})? [-+0-9.eE]+|\w+(\{.*\})? (NaN|[+-]Inf)", line), line
    assert 'ndp_devices{resource="nvidia.com/gpu"} 8' in text
    assert 'ndp_devices_healthy{resource="nvidia.com/gpu"} 8' in text
    assert "ndp_driver_up 1" in text


def test_every_metric_is_documented(node, pytestconfig):
    documented = set(re.findall(r"`(ndp_\w+)`", (pytestconfig.rootpath / "docs/health.md").read_text()))
    sources = [file.read_text() for file in (pytestconfig.rootpath / "src").rglob("*.cc") if "_test" not in file.name]
    assert set(re.findall(r'"(ndp_[a-z_]+)"', "".join(sources))) == documented
    node.serve("dgx-h100")
    node.allocate(1)
    served = set(re.findall(r"^# TYPE (\w+)", node.plugins[0].get("/metrics")[1], re.M))
    assert served and served <= documented


def test_ready_means_registered_or_nothing_to_register(node):
    node.up("dgx-h100", "--gpus", "2")
    plugin = node.start_plugin()
    eventually(lambda: plugin.get("/readyz")[0] == 503 and "not registered" in plugin.get("/readyz")[1],
               "not ready without a kubelet")
    assert plugin.get("/livez")[0] == 200
    node.start_kubelet()
    eventually(lambda: plugin.get("/readyz")[0] == 200, "ready")


def test_live_whatever_the_driver_does(node):
    node.up("dgx-h100", "--gpus", "2")
    node.sim("function", "--function", "all", "--hang")
    plugin = node.start_plugin("--fail-on-init-error=false")
    eventually(lambda: plugin.get("/livez")[0] == 200, "live")
    assert plugin.get("/readyz")[0] == 503


def test_an_address_in_use_is_an_error_with_the_address(node):
    node.up("dgx-h100", "--gpus", "1")
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        plugin = node.start_plugin(f"--listen-address=127.0.0.1:{port}")
        assert plugin.process.wait(20) == 1
    assert f"127.0.0.1:{port}" in plugin.log().splitlines()[-1]
