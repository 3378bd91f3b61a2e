// Package chart renders the Helm chart of deploy/chart with Helm's own library. The plain manifests
// of deploy/base are the chart with its default values, so both ways to install have one source:
//
//	go generate ./chart    in the folder integration, or `make generate`, writes deploy/base
package chart

//go:generate go test . -run "^(TestChartFilesMatchTheRepository|TestChartReadmeMatchesTheValues|TestTheSchemaOfTheDefaultConfigIsThatOfTheCRD)$" -update
//go:generate go test . -run ^TestBaseMatchesTheChart$ -update
