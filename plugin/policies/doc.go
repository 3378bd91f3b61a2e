// Package policies applies StartPolicies to the pods of one node.
//
//	StartPolicies in force -> Matcher: which pod is in which group, and which limits hold now
//	pods, namespaces       ->    |
//	                             v
//	       throttle: SetPolicies, SetGroups, Finished
//
// A [Matcher] blocks nowhere, and takes the time as a parameter: the daemon's one clock
// calls [Matcher.Advance] when an override begins or ends. What a policy asks of a pod is
// taken by the pod watch before it forgets the rest of it; labels of namespaces are
// watched only while a policy asks for more than a namespace's name.
//
// A policy that cannot be evaluated holds no pod: [Matcher.State] says why.
package policies
