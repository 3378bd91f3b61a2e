// Package crd finds the PacemakerConfig and the StartPolicies that are in force on
// this node.
//
// [Parse] and [Load] read them from a file. An error names each field that is wrong and
// says what was expected there. [Validate] and [ValidatePolicy] check the same rules on
// typed objects, and the custom resource definitions in deploy/crds have them for the API
// server. [Source] watches the API server and reports which config and which StartPolicies are in
// force. Package startpolicy evaluates these.
//
// Packages informer and kube are here because crd reads its API with the first and this node's Node with both. The daemon
// follows its other objects with the same wrapper, so that each outage is logged once and recovers in the same way.
//
// An invalid object never ends the process: its last valid version stays in force. While the
// API server is unavailable, everything stays as it is.
package crd
