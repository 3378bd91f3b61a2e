// Package admin reports the state of a daemon. It has the types of `pod-pacemaker status -o json`,
// `why -o json` and `costs -o json`, the server of the administrator's unix socket with its client, and
// the server of /metrics, /healthz, /readyz and the page.
//
// The JSON names are stable: fields may be added, but no field changes its name or unit. A time is in
// RFC 3339. A time span is a number of seconds, and its name ends in Seconds.
//
// The protocol of the socket is HTTP:
//
//	GET /v1/status   200 Status as JSON
//	GET /v1/costs    200 Costs as JSON
//	GET /v1/alive    200 while the daemon makes decisions, else 503
//	POST /v1/off?for=1h      200 the end as JSON; 0s ends it. Else 400
//	POST /v1/admit?uid=UID   200 if the pod waited and is admitted, else 409
//
// The body of any other answer is the reason as text. Only root and the user of the daemon can connect.
package admin
