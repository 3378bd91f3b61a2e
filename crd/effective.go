package crd

import "github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"

// Origin is where the config that is in force came from.
type Origin string

// The origins.
const (
	OriginNone Origin = "None" // no config: nothing is held
	OriginFile Origin = "File" // the file given to the daemon
	OriginAPI  Origin = "API"  // an object of the API server
	OriginDisk Origin = "Disk" // what the API server said last, before it has answered this time
)

// Effective is the config that is in force on this node. It must not be changed.
type Effective struct {
	// Name is the config's metadata.name; empty if Origin is OriginNone.
	Name string
	// Origin is where it came from.
	Origin Origin
	// Generation is the object's metadata.generation, 0 for a file. It is the
	// generation in force, not that of a newer but invalid version.
	Generation int64
	// Spec is what it says; empty if Origin is OriginNone, which sets no limit.
	Spec v1alpha1.PacemakerConfigSpec
	// Ties are the names of the configs that have the same priority as this one and select the
	// node too, sorted.
	Ties []string
}

// FromFile is what is in force when no API server has a config for this node.
// The config is in force whatever its nodeSelector, priority and instance say: a
// file is given to the daemon that it is for. Nil stands for no file.
func FromFile(config *v1alpha1.PacemakerConfig) Effective {
	if config == nil {
		return Effective{Origin: OriginNone}
	}
	return Effective{Name: config.Name, Origin: OriginFile, Spec: config.Spec}
}
