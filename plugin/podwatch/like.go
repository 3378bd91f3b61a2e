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

// Like is what makes the starts of two pods alike. Any user who may make a pod may claim all of it.
type Like struct {
	// Owner is the pod's controller, as "Kind/name": of a pod of a Deployment, that; of one of a
	// CronJob, the Job without its number. Empty: it has none, or one of a name that is too long.
	Owner string
	// Revision tells the templates of an owner apart; empty where that has no revisions.
	Revision string
	// Images stands for the images of all containers, with their commands and arguments, as the spec has them:
	// digests are not known before a container has run.
	Images string
	// MilliCPU is the CPU limit of all app containers together, in thousandths of a core; 0: one of
	// them has none.
	MilliCPU int64
}

// longestOwner bounds what is kept of an owner; the API bounds no kind.
const longestOwner = 320

func likeOf(p *corev1.Pod) (l Like) {
	if owner := metav1.GetControllerOfNoCopy(p); owner != nil && owner.Kind != "Node" {
		l.Owner, l.Revision = ownerOf(owner, p.Labels)
	}
	if len(l.Owner) > longestOwner {
		l.Owner, l.Revision = "", ""
	}
	hash := sha256.New()
	write := json.NewEncoder(hash) // a hash takes everything
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
			name = name[:i] // that of the CronJob
		}
	}
	return kind + "/" + name, labels["controller-revision-hash"]
}

// patience returns how long after it was started the first container of a pod is killed that does not come up, by
// its startup probe, or where it has none, its liveness probe. kubelet may do so up to a period earlier, for its
// probes begin at any moment of one. Zero: none is.
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
			seconds := int64(max(0, probe.InitialDelaySeconds)) + int64(max(1, probe.FailureThreshold))*int64(max(1, probe.PeriodSeconds))
			if d := time.Duration(min(seconds, 1<<32)) * time.Second; least == 0 || d < least {
				least = d
			}
		}
	}
	return least
}
