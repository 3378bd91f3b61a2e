package lab

import (
	"path/filepath"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// SandboxConfig returns the sandbox that a kubelet would request for a pod of that namespace, name
// and UID, with the run's own cgroup and log folder.
func (r *Runtime) SandboxConfig(namespace, name, uid string) *runtimeapi.PodSandboxConfig {
	return &runtimeapi.PodSandboxConfig{
		Metadata:     &runtimeapi.PodSandboxMetadata{Namespace: namespace, Name: name, Uid: uid},
		Hostname:     name,
		LogDirectory: filepath.Join(r.Dir, "pods", uid),
		DnsConfig:    &runtimeapi.DNSConfig{},
		Labels: map[string]string{
			"io.kubernetes.pod.namespace": namespace,
			"io.kubernetes.pod.name":      name,
			"io.kubernetes.pod.uid":       uid,
		},
		Linux: &runtimeapi.LinuxPodSandboxConfig{
			CgroupParent: r.CgroupParent + "/pod" + uid,
			SecurityContext: &runtimeapi.LinuxSandboxSecurityContext{
				NamespaceOptions: &runtimeapi.NamespaceOption{},
				Seccomp:          &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_RuntimeDefault},
			},
		},
	}
}
