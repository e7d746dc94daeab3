//go:build race

package grpclimit_test

func init() { raceEnabled = true }
