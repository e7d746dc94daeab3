package zone

import (
	"fmt"
	"hash/fnv"
	"path/filepath"
	"strings"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/internal/sharedfile"
)

// InFolder returns the spec with its file in a folder. counts describes the keys and tiers of the limit called name.
// The name of the file also contains the layout, and those numbers of the spec that cannot change within a file. So a
// limit that differs in one of these starts another file, and a process with the old limit keeps the old file.
func (s Spec) InFolder(folder, name string, counts ...string) Spec {
	said := fnv.New64a()
	_, _ = fmt.Fprintf(said, "%q %q %v %v %d %d %v", name, counts, // never an error
		s.Policy.Algorithm(), s.Policy.IsAligned(), len(s.tiers()), s.MaxKeys, s.Overflow)
	if _, _, isCalendar := s.Policy.Calendar(); isCalendar {
		_, _ = fmt.Fprintf(said, " %s", s.Policy.Kind())
	}
	plain := strings.Map(func(c rune) rune {
		if strings.ContainsRune("/\\. ", c) {
			return '_'
		}
		return c
	}, name)
	s.State = filepath.Join(folder, fmt.Sprintf("%.64s-%016x.v%d.weir", plain, said.Sum64(), sharedfile.LayoutVersion))
	return s
}

// shared makes the limiter with the file of the spec. As far as possible it has the numbers in the file until the use
// starts, so a configuration that never starts changes nothing for other processes.
func (s Spec) shared(options []engine.Option) (*engine.Limiter, error) {
	options = append(options, engine.Shared(s.State))
	if table, err := engine.ReadShared(s.State); err == nil {
		if l, err := engine.New(table.Policies[0], append(options, engine.Tiers(table.Policies[1:]...))...); err == nil {
			return l, nil
		}
	}
	return engine.New(s.Policy, append(options, engine.ReplacePolicy())...)
}
