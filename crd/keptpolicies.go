package crd

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
)

// mostKept bounds the file of the policies, in bytes.
const mostKept = 16 << 20

// keptPolicies keeps on disk which policies the API server said last are in force.
type keptPolicies struct {
	path, node string
	nodeUID    types.UID // of the Node that what was remembered is of; empty: not known
	written    []byte    // what the file holds, as far as this process knows
}

// keptPoliciesFile is the layout of the file; P is what a policy is read or written as.
type keptPoliciesFile[P any] struct {
	Version  int       `json:"version"`
	Node     string    `json:"node"`
	NodeUID  types.UID `json:"nodeUID,omitempty"`
	Policies []P       `json:"policies"`
}

// Remember puts in force the policies that the file at path holds, until the API server
// answers, and has what that says kept there. A file that is damaged, or of another
// node, is logged and left out, and so is a policy in it that is not valid. It is to
// be called before Run, once.
func (p *Policies) Remember(path string) {
	p.kept = &keptPolicies{path: path, node: p.source.node}
	found, err := p.kept.load(func(err error) {
		p.log.WithError(err).Warn("a StartPolicy on disk is left out until the API server answers")
	})
	if err != nil {
		p.log.WithError(err).Warn("the StartPolicies on disk are left out: until the API server answers, those of the file are in force, if there are any")
		return
	}
	if found == nil {
		return
	}
	if len(found) > 0 {
		p.mu.Lock()
		p.current = found
		p.mu.Unlock()
		p.log.WithField("policies", policyNames(found)).Info("until the API server answers, the StartPolicies are in force that it told last")
	}
	p.tell()
}

// load gives the policies of the file; nil: there is none. leftOut is told why of each that
// is not valid, which an earlier or later version may have taken for valid.
func (k *keptPolicies) load(leftOut func(error)) ([]*v1alpha1.StartPolicy, error) {
	data, err := readFileUpTo(k.path, mostKept)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var file keptPoliciesFile[map[string]any]
	if len(data) > mostKept {
		return nil, fmt.Errorf("%s: it has more than %d bytes", k.path, mostKept)
	}
	if err := utiljson.Unmarshal(data, &file); err != nil {
		return nil, fmt.Errorf("%s: damaged: %w", k.path, err)
	}
	switch {
	case file.Version != lastGoodVersion:
		return nil, fmt.Errorf("%s: version: %d: must be %d", k.path, file.Version, lastGoodVersion)
	case file.Node != k.node:
		return nil, fmt.Errorf("%s: node: %q: this node is %q", k.path, file.Node, k.node)
	}
	policies := []*v1alpha1.StartPolicy{}
	for _, object := range file.Policies {
		// A later version may have had fields that this one leaves out.
		policy, _, errs := decodePolicy(object)
		if len(errs) > 0 {
			name, _, _ := unstructured.NestedString(object, "metadata", "name")
			leftOut(fmt.Errorf("%s: %q: %w", k.path, name, invalidAs(errs)))
			continue
		}
		policies = append(policies, policy)
	}
	k.written, k.nodeUID = data, file.NodeUID
	return policies, nil
}

// forgetOtherNode puts out of force what was remembered if that was of another Node of this
// name, whose disk this one has a copy of.
func (p *Policies) forgetOtherNode() {
	_, node := p.source.labelsNow()
	if p.kept == nil || p.kept.nodeUID == "" || node == "" || p.kept.nodeUID == node {
		return
	}
	p.kept.nodeUID = ""
	p.mu.Lock()
	p.current = p.fallback
	p.mu.Unlock()
	p.log.WithField("node", p.source.node).Warn("the StartPolicies on disk are left out: they are of another node of this name")
	p.tellNow()
}

// save puts the policies into the file, unless they are there already.
func (k *keptPolicies) save(node types.UID, policies []*v1alpha1.StartPolicy) error {
	file := keptPoliciesFile[*v1alpha1.StartPolicy]{Version: lastGoodVersion, Node: k.node, NodeUID: node, Policies: []*v1alpha1.StartPolicy{}}
	for _, policy := range policies {
		file.Policies = append(file.Policies, &v1alpha1.StartPolicy{
			TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.PolicyKind},
			ObjectMeta: metav1.ObjectMeta{Name: policy.Name, UID: policy.UID, Generation: policy.Generation},
			Spec:       policy.Spec,
		})
	}
	data, err := json.MarshalIndent(file, "", "  ")
	if err != nil {
		return err
	}
	if data = append(data, '\n'); string(data) == string(k.written) {
		return nil
	}
	if err := writeFile(k.path, data); err != nil {
		return err
	}
	k.written = data
	return nil
}

// keep keeps on disk what the API server says.
func (p *Policies) keep(node types.UID, policies []*v1alpha1.StartPolicy) {
	if p.kept == nil {
		return
	}
	fault := ""
	if err := p.kept.save(node, policies); err != nil {
		fault = err.Error()
	}
	if fault != "" && fault != p.unkept {
		p.log.WithField("reason", fault).Warn("the StartPolicies cannot be kept on disk: after a reboot they are not in force before the API server answers")
	}
	p.unkept = fault
}
