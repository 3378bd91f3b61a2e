// Package policies applies StartPolicies to the pods of one node.
//
// A [Set] is the policies in force: it says which limits hold now, and in which groups a pod is. It is a value that
// never changes, so a pod can be matched without a lock. Package starts has the present Set, and puts limits and groups
// into the limiter. [Namespaces] watches the labels of namespaces, once a policy selects by more than their names.
//
// A policy that cannot be evaluated holds no pod; [State] has the reason.
package policies
