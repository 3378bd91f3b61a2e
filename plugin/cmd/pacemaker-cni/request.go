package main

import (
	"cmp"
	"strings"
)

// variables are the environment variables of a CNI plugin that this one uses.
var variables = []string{"CNI_COMMAND", "CNI_CONTAINERID", "CNI_NETNS", "CNI_ARGS"}

// request is one call of the plugin by the runtime.
type request struct {
	command, netns       string
	uid, namespace, name string // of the pod; empty if the runtime is not used by kubelet
	sandbox              string // its ID
}

// parseRequest returns the request in the environment. Runtimes of kubelet describe the pod in CNI_ARGS.
func parseRequest(environ []string) request {
	values := map[string]string{}
	set := func(assignment string) {
		name, value, _ := strings.Cut(assignment, "=")
		values[name] = value
	}
	for _, e := range environ {
		set(e)
	}
	for arg := range strings.SplitSeq(values["CNI_ARGS"], ";") {
		set(arg)
	}
	return request{
		command: values["CNI_COMMAND"], netns: values["CNI_NETNS"],
		uid: values["K8S_POD_UID"], namespace: values["K8S_POD_NAMESPACE"], name: values["K8S_POD_NAME"],
		sandbox: cmp.Or(values["K8S_POD_INFRA_CONTAINER_ID"], values["CNI_CONTAINERID"]),
	}
}
