//go:build race

package rpclimit_test

func init() { raceEnabled = true }
