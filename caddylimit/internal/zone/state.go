package zone

import (
	"fmt"
	"hash/fnv"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/internal/sharedfile"
)

// InFolder returns the spec with a file in a folder. For a limit in a store, this is a file of debts. The file's name
// depends on the limit's name, its keys and tiers (counts), and the settings that a file cannot change. The name of a
// file of debts also depends on the store's address. The name of any other file also depends on the layout. If any of
// these differ, the limit starts another file.
func (s Spec) InFolder(folder, name string, counts ...string) Spec {
	if s.Store != "" {
		address, _ := url.Parse(s.Store) // if the address is invalid, connecting returns the error
		s.Debts = stem(folder, name, "%q %q %v %d %q", name, counts, s.Policy.Algorithm(), len(s.tiers()), address.Redacted())
		return s
	}
	kind := ""
	if _, _, isCalendar := s.Policy.Calendar(); isCalendar {
		kind = " " + s.Policy.Kind()
	}
	s.State = stem(folder, name, "%q %q %v %v %d %d %v%s", name, counts,
		s.Policy.Algorithm(), s.Policy.IsAligned(), len(s.tiers()), s.MaxKeys, s.Overflow, kind) +
		fmt.Sprintf(".v%d.weir", sharedfile.LayoutVersion)
	return s
}

// stem returns the beginning of the paths of a limit's files: the limit's name and a hash of the formatted values.
func stem(folder, name, format string, values ...any) string {
	hash := fnv.New64a()
	_, _ = fmt.Fprintf(hash, format, values...) // never returns an error
	safeName := strings.Map(func(c rune) rune {
		if strings.ContainsRune("/\\. ", c) {
			return '_'
		}
		return c
	}, name)
	return filepath.Join(folder, fmt.Sprintf("%.64s-%016x", safeName, hash.Sum64()))
}

// sharedLimiter makes the limiter that uses the spec's file. If possible, the limiter keeps the numbers in the file
// until the zone's use starts. So a configuration that never starts affects no other process.
func (s Spec) sharedLimiter(options []engine.Option) (*engine.Limiter, error) {
	options = append(options, engine.Shared(s.State))
	if table, err := engine.ReadShared(s.State); err == nil {
		if l, err := engine.New(table.Policies[0], append(options, engine.Tiers(table.Policies[1:]...))...); err == nil {
			return l, nil
		}
	}
	return engine.New(s.Policy, append(options, engine.ReplacePolicy())...)
}
