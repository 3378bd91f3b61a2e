// Package observe reports what the daemon does: to the log, Prometheus, and Kubernetes
// events on pods and on the node.
//
// The other packages report each [Event] to [Observer.Report]. One type is one kind of event: its method report says
// what that causes. start.go has the starts, queue.go how pods wait, runtime.go the calls of the runtime, node.go the
// node, and config.go what is in force. The collectors of this package read the rest, [Scraped], at each scrape.
// It decides nothing about pods. Only [Observer.Supervised] and a scrape may block.
package observe
