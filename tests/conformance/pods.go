package conformance

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const gpuResource = "nvidia.com/gpu"

// newPod makes a pod whose one container asks for count devices of a resource.
func newPod(name, resourceName string, count int) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: "default", UID: types.UID("uid-of-" + name),
		},
		Spec: v1.PodSpec{Containers: []v1.Container{newContainer("main", resourceName, count)}},
	}
}

func newContainer(name, resourceName string, count int) v1.Container {
	limits := v1.ResourceList{v1.ResourceName(resourceName): resource.MustParse(fmt.Sprint(count))}
	return v1.Container{
		Name:      name,
		Resources: v1.ResourceRequirements{Limits: limits, Requests: limits},
	}
}

// withInitContainer puts an init container in front that asks for as many devices.
func withInitContainer(pod *v1.Pod) *v1.Pod {
	init := *pod.Spec.Containers[0].DeepCopy()
	init.Name = "init"
	pod.Spec.InitContainers = append(pod.Spec.InitContainers, init)
	return pod
}
