// Package shapes draws what a node goes through: its pods, its limits, and what happens to daemon, kubelet, runtime and API
// server. A seed always draws the same [Shape]. The tests of package plugin run shapes in a bubble, beside the runtime and
// the kubelet of package runtimetest; the scenarios of integration/e2e run them on a real node.
//
// The package draws and describes. It runs nothing, and judges nothing.
package shapes
