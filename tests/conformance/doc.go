// Package conformance proves the built plugin against the kubelet's own device manager.
//
// The package compiles against two kubelets: go.mod takes 1.37, kubelet-1.34.mod (with the build
// tag kubelet134) takes 1.34. What differs between their Go interfaces is in kubelet_v134.go and
// kubelet_v137.go; where they behave differently the tests ask keepsInstancesSideBySide.
//
// Every test runs in a process of its own, in private mount and process namespaces, with a
// simulated machine (ndp-sim), a device manager and the real plugin program in it (see onNode).
// A crash of the kubelet's code therefore fails one test, and nothing is left on the host.
//
// The tests named TestNVIDIAs… need no kubelet: they compare the CDI files with those of NVIDIA's own
// generator, built from its Go package (nvcdi) and as the program nvidia-ctk. Every deliberate
// difference is in the test, with its reason; anything else fails. NDP_RANDOM_ROOTS=1000 compares so
// many disarranged machines instead of thirty.
package conformance
