// Package startpolicy evaluates StartPolicies: whether a policy selects a pod, in which
// group the pod is, and which limits are in force at a time.
//
// It does no I/O, and takes the time as a parameter. [Compile] reads a policy once. The
// resulting [Policy] is matched with the [Facts] of pods, which [FactsOf] extracts from
// API objects, so that the objects need not be kept.
package startpolicy
