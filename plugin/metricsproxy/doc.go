// Package metricsproxy serves the metrics of a node's daemon to other hosts over TLS, if the API server authorizes the
// client. `pod-pacemaker metrics-proxy` runs it in a process beside the daemon. That process needs no root and nothing
// from the node, so no other host talks to the daemon, which is root.
//
// A request needs a bearer token. A TokenReview returns the user of the token, and a SubjectAccessReview whether that user
// may get the non-resource URL /metrics. The answer is kept for a minute, so a client that scrapes every few seconds costs
// the API server two requests a minute. All tokens together cost it at most 10 a second. A user who sends many unknown tokens
// can keep others from reading.
//
// It can also answer why a pod of the node waits, to users who may get that pod. They need no right to the metrics. The
// question comes from another host, or through the API server's proxy of pods, which keeps the header Authorization: so
// the token may be in a header of its own.
//
// If the API server does not answer, the request is refused.
package metricsproxy
