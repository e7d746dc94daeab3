package config

import (
	"fmt"
	"hash/fnv"
	"path/filepath"

	"go.yaml.in/yaml/v4"

	"github.com/weir-go/weir/engine"
)

// stateFolder reads the folder in which the limits are kept beyond the process.
func (d *decoder) stateFolder(n *yaml.Node) string {
	s, ok := d.text(n, "state")
	if ok && !filepath.IsAbs(s) {
		d.fail(n, "state: %s: want the full path of a folder, such as /dev/shm/weir", quote(s))
	}
	return s
}

// checkState gives every rule that counts on this machine its file in the folder.
func (d *decoder) checkState(f *File, at *yaml.Node) {
	if f.State == "" {
		return
	}
	for i := range f.Rules {
		r := &f.Rules[i]
		switch {
		case r.Store != nil || r.IsInFlight() || !r.counts():
			continue // elsewhere, no longer than the process, or nowhere
		case r.Policy.Algorithm() == engine.AlgorithmSlidingLog:
			d.fail(at, "state: the rule %s counts by a sliding log, which cannot be kept in a file: "+
				"take the sliding window, or leave state out", r.Name)
		default:
			r.State = filepath.Join(f.State, r.stateName())
		}
	}
}

// stateName returns the name of the rule's file. It says what is counted and how, so that a rule of other numbers
// begins a file of its own, while a process with the old numbers still has the old one.
func (r *Rule) stateName() string {
	said := fnv.New64a()
	_, _ = fmt.Fprintf(said, "%v\n%s\n%d\n%s", r.Key, r.limits(), r.MaxKeys, r.Overflow) // never an error
	return fmt.Sprintf("%s-%016x.weir", r.Name, said.Sum64())
}

// StateOptions returns what the limiter of a server takes beside those of [Rule.NewLimiter].
func (r *Rule) StateOptions() []engine.Option {
	if r.State == "" {
		return nil
	}
	return []engine.Option{engine.Shared(r.State)}
}
