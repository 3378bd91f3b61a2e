// Package chart renders the Helm chart of deploy/chart with Helm's own library.
// The plain manifests of deploy/base are what it renders with the chart's
// defaults, so that both ways to install are one source:
//
//	go generate ./chart    in the folder integration, or `make generate`, writes deploy/base anew
package chart

//go:generate go test . -run "^(TestTheChartsFilesAreThoseOfTheRepository|TestTheChartsReadmeIsOfItsValues)$" -update
//go:generate go test . -run ^TestBaseIsWhatTheChartRenders$ -update
