// Package startpolicy tells what a StartPolicy means for a pod: whether it is for
// that pod, in which group, and which limits hold at a time.
//
// It is pure: it does no I/O, and takes the time as a parameter. [Compile] reads a
// policy once; what it gives is matched with the [Facts] of pods, which [FactsOf]
// takes from an API object before that is dropped.
package startpolicy
