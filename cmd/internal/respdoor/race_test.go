//go:build race

package respdoor

const raceEnabled = true
