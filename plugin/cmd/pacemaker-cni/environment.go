package main

import (
	"cmp"
	"strings"
)

// variables are what a runtime tells a CNI plugin beside the configuration.
var variables = []string{"CNI_COMMAND", "CNI_CONTAINERID", "CNI_NETNS", "CNI_ARGS"}

// request is what the runtime asks for.
type request struct {
	command, netns string
	// Of the pod; empty where the runtime is not kubelet's.
	uid, namespace, name string
	sandbox              string
}

// environment returns what the runtime asks for. What kubelet's runtimes tell of the pod is in CNI_ARGS.
func environment(environ []string) request {
	told := map[string]string{}
	take := func(assignment string) {
		name, value, _ := strings.Cut(assignment, "=")
		told[name] = value
	}
	for _, e := range environ {
		take(e)
	}
	for arg := range strings.SplitSeq(told["CNI_ARGS"], ";") {
		take(arg)
	}
	return request{
		command: told["CNI_COMMAND"], netns: told["CNI_NETNS"],
		uid: told["K8S_POD_UID"], namespace: told["K8S_POD_NAMESPACE"], name: told["K8S_POD_NAME"],
		sandbox: cmp.Or(told["K8S_POD_INFRA_CONTAINER_ID"], told["CNI_CONTAINERID"]),
	}
}
