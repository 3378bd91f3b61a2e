// Package oldapi tests that the oldest Kubernetes that the chart accepts takes the CRDs of deploy/crds. It is a module
// of its own, because it needs that version's validation of CRDs, and integration needs current libraries. An older
// API server estimates a higher cost for some validation rules, and refuses a CRD whose rules cost too much.
//
// `make generated` runs it.
package oldapi
