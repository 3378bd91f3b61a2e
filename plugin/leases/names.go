package leases

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

const (
	// SlotLabel is on every Lease that is a slot; its value names the group.
	SlotLabel = "pod-pacemaker.io/slots-of"
	// PolicyAnnotation says for people of which policy a Lease is a slot.
	PolicyAnnotation = "pod-pacemaker.io/policy"
	// GroupAnnotation says of which of its groups, the first kilobyte of that.
	GroupAnnotation = "pod-pacemaker.io/group"

	namePrefix     = "pod-pacemaker-"
	mostPolicyName = 200 // bytes of it in the name of a Lease, which has 253 at most
	mostAnnotation = 1024
)

// identify gives the group its name in labels and names of Leases. The policy's UID is
// in it: the Leases of a policy that was deleted and made anew are about to be collected.
func identify(policy types.UID, key throttle.GroupKey) string {
	sum := sha256.Sum256([]byte(string(policy) + "\x00" + key.Group))
	return hex.EncodeToString(sum[:8])
}

// leaseName gives the name of one slot of a group.
func leaseName(policy, id string, n int) string {
	if len(policy) > mostPolicyName {
		policy = strings.TrimRight(policy[:mostPolicyName], "-.")
	}
	return fmt.Sprintf("%s%s-%s-%d", namePrefix, policy, id, n)
}

// newLease gives the Lease of a slot as its holder writes it.
func newLease(c call, holder string, now time.Time) *coordinationv1.Lease {
	seconds, at := int32(lasts/time.Second), metav1.NewMicroTime(now)
	since := at
	if c.verb == renewSlot && !c.slot.since.IsZero() {
		since = metav1.NewMicroTime(c.slot.since)
	}
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Name: c.slot.name, Labels: map[string]string{SlotLabel: c.slot.id},
			Annotations: map[string]string{PolicyAnnotation: c.key.Policy, GroupAnnotation: cut(c.key.Group, mostAnnotation)},
			// Who deletes the policy need not collect its Leases.
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: v1alpha1.GroupVersion.String(), Kind: ownerKind, Name: c.key.Policy, UID: c.policy,
			}},
		},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: &holder, LeaseDurationSeconds: &seconds, AcquireTime: &since, RenewTime: &at,
		},
	}
}

// ownerKind is the kind of the policies.
const ownerKind = "StartPolicy"

var errNoSlot = errors.New("the Lease is no slot")

// readRecord gives what matters of a Lease. The error wraps errNoSlot for one that is
// not as newLease makes them.
func readRecord(lease *coordinationv1.Lease) (record, error) {
	id := lease.Labels[SlotLabel]
	at := strings.LastIndexByte(lease.Name, '-')
	n, err := strconv.Atoi(lease.Name[at+1:])
	if id == "" || err != nil || n < 0 || n >= mostSlots {
		return record{}, fmt.Errorf("%w: %s", errNoSlot, lease.Name)
	}
	version, err := versionOf(lease.ResourceVersion)
	if err != nil {
		return record{}, fmt.Errorf("the Lease %s: %w: %w", lease.Name, errBadVersion, err)
	}
	r := record{id: id, n: n, name: lease.Name, uid: lease.UID, version: version, lasts: lasts}
	if lease.Spec.HolderIdentity != nil {
		r.holder = *lease.Spec.HolderIdentity
	}
	if s := lease.Spec.LeaseDurationSeconds; s != nil {
		r.lasts = min(max(lasts, time.Duration(*s)*time.Second), mostLasts)
	}
	if at := lease.Spec.AcquireTime; at != nil {
		r.since = at.Time
	}
	return r, nil
}

// versionOf reads a resourceVersion, which grows with every write.
func versionOf(text string) (uint64, error) { return strconv.ParseUint(text, 10, 64) }

func versionText(version uint64) string { return strconv.FormatUint(version, 10) }

// cut shortens a text to so many bytes.
func cut(text string, most int) string {
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "")
	}
	return text
}
