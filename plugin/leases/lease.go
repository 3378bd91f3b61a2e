package leases

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

const (
	// SlotLabel is on every Lease that is a slot. Its value identifies the group.
	SlotLabel = "pod-pacemaker.io/slots-of"
	// GroupAnnotation is the name of the group. Nothing reads it.
	GroupAnnotation = "pod-pacemaker.io/group"

	namePrefix     = "pod-pacemaker-"
	mostPolicyName = 200 // bytes in the name of a Lease, which has at most 253
	mostSlots      = 1000
)

// identify returns the id of a group in labels and in names of Leases. It depends on the UID of the policy, because
// the garbage collector may still have to delete the Leases of an earlier policy of the same name.
func identify(owner types.UID, key throttle.GroupKey) string {
	sum := sha256.Sum256([]byte(string(owner) + "\x00" + key.Group))
	return hex.EncodeToString(sum[:8])
}

func leaseName(d demand, n int) string {
	policy := d.key.Policy
	if len(policy) > mostPolicyName {
		policy = strings.TrimRight(policy[:mostPolicyName], "-.")
	}
	return fmt.Sprintf("%s%s-%s-%d", namePrefix, policy, d.id, n)
}

// newLease returns the Lease of a slot as its holder writes it. v is the version of the Lease that it replaces, or zero
// to create one.
func newLease(d demand, n int, v version, holder string, since, now time.Time) *coordinationv1.Lease {
	seconds := int32(leaseDuration / time.Second)
	acquired, renewed := metav1.NewMicroTime(since), metav1.NewMicroTime(now)
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Name: leaseName(d, n), Labels: map[string]string{SlotLabel: d.id}, UID: v.uid, ResourceVersion: v.resource,
			Annotations: map[string]string{GroupAnnotation: d.key.Group},
			// The user who deletes the policy need not delete its Leases.
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: v1alpha1.GroupVersion.String(), Kind: "StartPolicy", Name: d.key.Policy, UID: d.owner,
			}},
		},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: &holder, LeaseDurationSeconds: &seconds, AcquireTime: &acquired, RenewTime: &renewed,
		},
	}
}

// version identifies one state of a Lease.
type version struct {
	uid      types.UID
	resource string
}

// slot is the state of a Lease as this node has seen it.
type slot struct {
	name    string
	holder  string
	version version
	seen    time.Time // when this node first saw this version
}

// free reports whether another node may take the slot. The times in the Lease are not used, because they are of
// another clock. Its duration is not used either: all daemons have leaseDuration.
func (s slot) free(now time.Time) bool {
	return s.holder == "" || !now.Before(s.seen.Add(leaseDuration))
}

// readSlot returns the slot whose Lease this is, with the id of its group and its number. The number is -1 if the Lease is
// none of a slot.
func readSlot(lease *coordinationv1.Lease, now time.Time) (s slot, id string, n int) {
	id = lease.Labels[SlotLabel]
	n, err := strconv.Atoi(lease.Name[strings.LastIndexByte(lease.Name, '-')+1:])
	if id == "" || err != nil || n < 0 || n >= mostSlots {
		return slot{}, "", -1
	}
	holder := ptr.Deref(lease.Spec.HolderIdentity, "")
	return slot{name: lease.Name, holder: holder, version: version{lease.UID, lease.ResourceVersion}, seen: now}, id, n
}
