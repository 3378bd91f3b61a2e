package crd

import "github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"

// Origin is the source of the config that is in force.
type Origin string

// The values of Origin.
const (
	OriginNone Origin = "None" // no config: no pod is held
	OriginFile Origin = "File" // the file given to the daemon
	OriginAPI  Origin = "API"  // an object of the API server
	OriginDisk Origin = "Disk" // an object that an earlier daemon got from the API server
)

// Effective is the config that is in force on this node. It must not be changed.
type Effective struct {
	// Name is the config's metadata.name; empty if Origin is OriginNone.
	Name   string
	Origin Origin
	// Generation is the object's metadata.generation, 0 for a file. It belongs to the version in
	// force, not to a newer version that is invalid.
	Generation int64
	// Spec is the config's spec. It is empty, and sets no limit, if Origin is OriginNone.
	Spec v1alpha1.PacemakerConfigSpec
	// Ties are the names of the other configs of the same priority that select the node too,
	// sorted.
	Ties []string
}

// FromFile returns what is in force when the API server has no config for this node. The
// nodeSelector, priority and instance of the config do not matter: the file was given to this
// daemon. A nil config stands for no file.
func FromFile(config *v1alpha1.PacemakerConfig) Effective {
	if config == nil {
		return Effective{Origin: OriginNone}
	}
	return Effective{Name: config.Name, Origin: OriginFile, Spec: config.Spec}
}
