// Package crd finds the PacemakerConfig and the StartPolicies that are in force on
// this node.
//
// Parse and Load read them from a file and say of every fault which field it is
// in and what was expected there; Validate checks the same rules on a typed
// object, and the custom resource definition in deploy/crds has them for the API
// server. Source does all of it continuously: it watches the API server and tells which
// config is in force now, and Policies does the same for StartPolicies, of which package startpolicy says what they mean.
//
// A bad object never ends the process. The last good version of an invalid object stays
// in force, and when the API server is away, everything stays as it is.
package crd
