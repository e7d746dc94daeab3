//go:build race

package connectlimit_test

func init() { raceEnabled = true }
