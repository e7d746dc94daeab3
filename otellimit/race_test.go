//go:build race

package otellimit_test

func init() { raceEnabled = true }
