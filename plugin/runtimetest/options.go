package runtimetest

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/containerd/nri/pkg/adaptation"
	"github.com/sirupsen/logrus"
)

// maxSocketPath is what a unix socket's address holds.
const maxSocketPath = 107

// Options say how a Runtime is made. Only Dir is required.
type Options struct {
	// Dir is an existing directory, used by this Runtime alone, for the socket and the
	// containers' bundles. Its path must be short enough for a socket's address.
	Dir string
	// Name and Version are what plugins are told; containerd and v2.4.2 by default.
	Name, Version string
	// RequestTimeout is how long a plugin may take to answer; 0 means NRI's default of 2 s.
	// It is one value for the process: see Start.
	RequestTimeout time.Duration
	// RejectHooks makes every container to which a plugin adds a hook fail, as containerd's
	// default_validator.reject_oci_hook_adjustment does.
	RejectHooks bool
	// Log gets what containerd would log, and NRI's own messages; nil discards them.
	Log logrus.FieldLogger
}

// New makes a Runtime. It starts nothing.
func New(o Options) (*Runtime, error) {
	if o.Dir == "" {
		return nil, errors.New("runtimetest: Options.Dir is empty")
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("runtimetest: %w", err)
	}
	o.Dir = dir
	o.Name = cmp.Or(o.Name, "containerd")
	o.Version = cmp.Or(o.Version, "v2.4.2")
	o.RequestTimeout = cmp.Or(o.RequestTimeout, adaptation.DefaultPluginRequestTimeout)
	if o.Log == nil {
		quiet := logrus.New()
		quiet.SetOutput(io.Discard)
		o.Log = quiet
	}
	r := &Runtime{opts: o, log: o.Log}
	if p := r.Socket(); len(p) > maxSocketPath {
		return nil, fmt.Errorf("runtimetest: socket path %q has %d bytes, a unix socket's address holds %d", p, len(p), maxSocketPath)
	}
	r.forget()
	return r, nil
}
