// Package policies applies StartPolicies to the pods of one node.
//
//	StartPolicies in force -> Matcher: which pod is in which group, and which limits hold now
//	pods, namespaces       ->    |
//	                             v
//	       throttle: SetPolicies, SetGroups, Finished
//
// A [Matcher] has no lock and no clock: its owner locks, and calls [Matcher.Advance] when a temporary override
// begins or ends. [Namespaces] watches the labels of namespaces, once a policy selects by more than their names.
//
// A policy that cannot be evaluated holds no pod; [State] has the reason.
package policies
