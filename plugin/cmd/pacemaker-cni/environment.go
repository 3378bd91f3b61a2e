package main

import "strings"

// variables are what a runtime tells a CNI plugin beside the configuration.
var variables = []string{"CNI_COMMAND", "CNI_CONTAINERID", "CNI_NETNS", "CNI_ARGS"}

// request is what the runtime asks for.
type request struct {
	command, containerID, netns string
	// Of the pod; empty where the runtime is not kubelet's.
	uid, namespace, name, sandbox string
}

func environment(environ []string) (r request) {
	for _, e := range environ {
		name, value, _ := strings.Cut(e, "=")
		switch name {
		case "CNI_COMMAND":
			r.command = value
		case "CNI_CONTAINERID":
			r.containerID = value
		case "CNI_NETNS":
			r.netns = value
		case "CNI_ARGS":
			r.args(value)
		}
	}
	if r.sandbox == "" {
		r.sandbox = r.containerID
	}
	return r
}

// args takes what kubelet's runtimes tell of the pod.
func (r *request) args(all string) {
	for arg := range strings.SplitSeq(all, ";") {
		name, value, _ := strings.Cut(arg, "=")
		switch name {
		case "K8S_POD_UID":
			r.uid = value
		case "K8S_POD_NAMESPACE":
			r.namespace = value
		case "K8S_POD_NAME":
			r.name = value
		case "K8S_POD_INFRA_CONTAINER_ID":
			r.sandbox = value
		}
	}
}
