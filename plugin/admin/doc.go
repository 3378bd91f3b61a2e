// Package admin is what a daemon tells about itself: the types of
// `pod-pacemaker status -o json`, `why -o json` and `costs -o json`, the server of the
// administrator's unix socket and its client, and the server of /metrics,
// /healthz and /readyz.
//
// The JSON names are stable: a field may be added, none changes its name or its
// unit. A time is RFC 3339, a time span is a number of seconds and its name ends
// in Seconds.
//
// The socket speaks HTTP:
//
//	GET /v1/status                       200 Status
//	GET /v1/why?namespace=NS&name=NAME   200 Why, 404 for a pod that is not known
//	GET /v1/costs                        200 Costs
//
// Every other answer is an Error. Only root and the user of the daemon can
// connect.
package admin
