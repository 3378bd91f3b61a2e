package podwatch

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Like identifies pods whose starts are alike. Any user who may create a pod can set all of it.
type Like struct {
	// Owner is the pod's controller, as "Kind/name". For a pod of a Deployment it is the Deployment, for one of a
	// CronJob the Job without its number. It is empty if the pod has none, or its name is too long.
	Owner string
	// Revision identifies the template of the owner; empty if the owner has no revisions.
	Revision string
	// Images is a hash of the images of all containers, with their commands and arguments, as in the spec. Digests
	// are not known before a container runs.
	Images string
	// MilliCPU is the CPU limit of all app containers together, in thousandths of a core; 0 if one of them has no limit.
	MilliCPU int64
}

// longestOwner is the longest owner that is kept. The API does not limit the length of a kind.
const longestOwner = 320

func likeOf(p *corev1.Pod) (l Like) {
	if owner := metav1.GetControllerOfNoCopy(p); owner != nil && owner.Kind != "Node" {
		l.Owner, l.Revision = ownerOf(owner, p.Labels)
	}
	if len(l.Owner) > longestOwner {
		l.Owner, l.Revision = "", ""
	}
	hash := sha256.New()
	write := json.NewEncoder(hash) // writing to a hash does not fail
	for _, containers := range [][]corev1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range containers {
			c := &containers[i]
			_ = write.Encode([][]string{{c.Image}, c.Command, c.Args})
		}
	}
	l.Images = hex.EncodeToString(hash.Sum(nil)[:8])
	for i := range p.Spec.Containers {
		limit := p.Spec.Containers[i].Resources.Limits.Cpu().MilliValue()
		if limit == 0 {
			l.MilliCPU = 0
			break
		}
		l.MilliCPU += limit
	}
	return l
}

func ownerOf(owner *metav1.OwnerReference, labels map[string]string) (name, revision string) {
	kind, name := owner.Kind, owner.Name
	switch hash := labels["pod-template-hash"]; {
	case kind == "ReplicaSet" && hash != "":
		if deployment, of := strings.CutSuffix(name, "-"+hash); of {
			return "Deployment/" + deployment, hash
		}
	case kind == "Job":
		if i := strings.LastIndexByte(name, '-'); i >= 0 && strings.Trim(name[i+1:], "0123456789") == "" {
			name = name[:i] // the name of the CronJob
		}
	}
	return kind + "/" + name, labels["controller-revision-hash"]
}

// patience returns how soon after its start a container of the pod may be killed if it does not come up: by its startup
// probe, or else its liveness probe. kubelet may kill it up to a period later, because its probes begin at any moment
// of a period. Of several containers, the earliest counts. It is a second at least, or zero if no container is killed.
func patience(p *corev1.Pod) (least time.Duration) {
	for _, containers := range [][]corev1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range containers {
			probe := containers[i].StartupProbe
			if probe == nil {
				probe = containers[i].LivenessProbe
			}
			if probe == nil {
				continue
			}
			seconds := int64(max(0, probe.InitialDelaySeconds)) + int64(max(0, probe.FailureThreshold-1))*int64(max(1, probe.PeriodSeconds))
			if d := time.Duration(min(max(1, seconds), 1<<32)) * time.Second; least == 0 || d < least {
				least = d
			}
		}
	}
	return least
}
