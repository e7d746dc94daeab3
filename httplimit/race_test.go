//go:build race

package httplimit_test

func init() { raceEnabled = true }
