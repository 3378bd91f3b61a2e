// Package crd finds the PacemakerConfig and the StartPolicies that are in force on
// this node.
//
// [Parse] and [Load] read them from a file. An error names each field that is wrong and
// says what was expected there. [Source] watches the API server and reports which config and
// which StartPolicies are in force. It checks what it reads, too: the API server may have an older
// definition. Package rules has the rules, and package startpolicy evaluates StartPolicies.
//
// Packages informer and kube are here because crd reads its API with the first and this node's Node with both. The daemon
// follows its other objects with the same wrapper, so that each outage is logged once and recovers in the same way.
//
// An invalid object never ends the process: its last valid version stays in force. While the
// API server is unavailable, everything stays as it is.
package crd
