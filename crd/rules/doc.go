// Package rules checks objects by the custom resource definitions, without an API server: it reads their schemas and the
// rules in them, which are CEL expressions, so that each rule stands once, as a marker of its type in package v1alpha1. What
// it finds names the field's path and says what is expected there, in more words than the API server has.
//
// The API server's own library does the same. An idle daemon that only has it in its program takes 7.5 MiB more, of 26. This
// package knows only the part of the schemas and of CEL that the definitions use, and its tests fail for any other. A test
// of the integration module compares it with the library.
package rules
