"""Pods live on through restarts of the plugin and the kubelet, and through faults."""

from container import Added
from driver import check_driver
from realnode import main_container
from simnode import GPU, QUICK_RECOVERY, eventually

CDI = "--device-list-strategy=cdi-cri"


def check_has(node, plain, pod, gpu) -> None:
    assert node.held(pod) == [gpu]
    check_driver(node.driver, Added(pod.view(), plain), node.driver.gpu_nodes(gpu), [gpu])


def test_a_restart_of_the_plugin(node, plain):
    """The container stays, and one that is made anew gets the same GPU, even with no plugin there."""
    plugin = node.plugin(CDI)
    pod = node.pod("lives", {GPU: 1}).running()
    (gpu,) = node.held(pod)
    container = pod.container_status()["containerID"]
    assert plugin.stop() == 0
    assert pod.container_status()["containerID"] == container
    node.kill(pod)
    pod.restarted(1)
    check_has(node, plain, pod, gpu)

    node.plugin(CDI)
    node.kill(pod)
    pod.restarted(2)
    check_has(node, plain, pod, gpu)
    other = node.pod("other", {GPU: 7}).running()
    assert gpu not in node.held(other)


def test_a_crash_of_the_plugin(node):
    node.plugin(CDI).kill()
    node.plugin(CDI)
    node.pod("after", {GPU: 2}).running()


def lost_the_race(pod):
    """Whether the kubelet has refused it since it looked before it had any list."""
    status = pod.status()
    return status.get("phase") == "Failed" and "no healthy devices present" in status.get("message", "")


def test_a_restart_of_the_kubelet(node, plain):
    """With a finished init container too, which makes the kubelet look at its devices again: milliseconds after it has
    made its socket. On a busy machine that can be before anybody has registered, so it may be tried again."""
    node.plugin(CDI)
    init = main_container({GPU: 1}, "init") | {"command": ["/bin/true"]}
    for tries_left in (2, 1, 0):
        pods = [node.pod("plain-pod", {GPU: 1}),
                node.pod("with-init", initContainers=[init], containers=[main_container({GPU: 1})])]
        held = [node.held(pod.running()) for pod in pods]
        containers = [pod.container_status()["containerID"] for pod in pods]
        node.stop_kubelet()
        node.start_kubelet()
        eventually(lambda: node.settled(node.plugins[0]), "the plugin is registered again")
        new = node.pod("new", {GPU: 6}).running()
        if tries_left > 0 and lost_the_race(pods[1]):
            for pod in [*pods, new]:
                pod.remove()
            continue
        for pod, gpus, container in zip(pods, held, containers, strict=True):
            pod.running()
            assert pod.container_status()["containerID"] == container
            assert node.held(pod) == gpus
            assert gpus[0] not in node.held(new)
        return


def test_a_fault_shows_in_the_pod(node):
    node.plugin(CDI, config=QUICK_RECOVERY)
    pod = node.pod("ill", {GPU: 1}).running()
    (gpu,) = node.held(pod)
    assert pod.resource_health(GPU) == {gpu["uuid"]: "Healthy"}
    container = pod.container_status()["containerID"]
    try:
        node.sim("fault", "--gpu", gpu["uuid"], "--xid", "79")
        eventually(lambda: pod.resource_health(GPU) == {gpu["uuid"]: "Unhealthy"}, "the pod's GPU is Unhealthy")
        assert gpu["uuid"] not in node.advertised()[GPU]
        assert pod.container_status()["containerID"] == container
    finally:
        node.sim("clear")
    eventually(lambda: pod.resource_health(GPU) == {gpu["uuid"]: "Healthy"}, "it is Healthy again")
    assert pod.container_status()["containerID"] == container


def test_a_rename_of_the_resource(node, plain):
    """What runs under the old name goes on and is made anew; its GPU is not handed out under the new one."""
    node.plugin(CDI, "--enable-resource-naming", config={})
    pod = node.pod("old-name", {GPU: 1}).running()
    (gpu,) = node.held(pod)
    container = pod.container_status()["containerID"]
    node.write_config({"resources": {"gpus": [{"pattern": "*H100*", "name": "hopper"}]}})
    eventually(lambda: len(node.advertised().get("nvidia.com/hopper", [])) == 7, "seven GPUs have the new name")
    assert node.advertised()[GPU] == []
    assert gpu["uuid"] not in node.advertised()["nvidia.com/hopper"]
    new = node.pod("new-name", {"nvidia.com/hopper": 2}).running()
    assert gpu not in node.held(new, "nvidia.com/hopper")
    assert pod.container_status()["containerID"] == container
    node.kill(pod)
    pod.restarted(1)
    check_has(node, plain, pod, gpu)
