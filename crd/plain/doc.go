// Package plain makes text from outside safe for a terminal, a log, an event or a status: what tenants, files, the API
// server and other programs wrote is data there, and controls nothing. It is the only place that does so.
package plain
