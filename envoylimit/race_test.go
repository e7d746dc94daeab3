//go:build race

package envoylimit

func init() { raceEnabled = true }
