package main

import (
	"github.com/weir-go/weir/cmd/internal/limit"
	"github.com/weir-go/weir/engine"
)

// A flag is a flag of the command line. It also says whether the flag was given.
type flag struct {
	name  string
	isSet bool
}

func limitFlags(f *limit.Flags) []flag {
	const defaultLimit = "1/s"
	return []flag{
		{"--limit", f.Limit.String() != defaultLimit},
		{"--algorithm", f.Algorithm != limit.Rated{}},
		{"--burst", f.Burst != nil},
		{"--aligned", f.Aligned},
		{"--max-keys", f.MaxKeys != engine.DefaultMaxKeys},
	}
}

// checkUnused returns an error if one of the flags was given, because it has no effect with a rule file.
func checkUnused(file string, flags []flag) error {
	for _, f := range flags {
		if f.isSet {
			return limit.Misuse("%s: the rules of %s define the limits: leave one of the two out", f.name, file)
		}
	}
	return nil
}
