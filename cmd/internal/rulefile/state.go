package rulefile

import (
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/weir-go/weir/cmd/internal/yamlfile"
	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/internal/sharedfile"
	"github.com/weir-go/weir/limits/spec"
)

const stateSuffix = ".weir"

// parseState reads the name of the state folder. This folder has the files of limits that outlive the process.
func parseState(d *decoder, n *yaml.Node, keyName, s string) string {
	if !filepath.IsAbs(s) {
		d.Fail(n, "%s: %s: want the full path of a folder, such as /dev/shm/weir", keyName, yamlfile.Quote(s))
	}
	return s
}

// debtSuffix is the end of the names of debt files. They have the tokens owed to a store ([redislimit.DebtFiles]).
const debtSuffix = ".debts"

// checkState names the files in the state folder for the rules and for the Redis clients. A rule that counts on this
// machine gets a file for its counts. A rule in a store gets files for the tokens that it owes to the store.
func (d *decoder) checkState(f *File, node *yaml.Node) {
	if f.State == "" {
		return
	}
	if f.Redis != nil {
		for i := range f.Redis.Limits {
			if l := &f.Redis.Limits[i]; l.HasTable() {
				d.Fail(node, "state: the limit %s of redis is a %v, and a file keeps only token buckets: leave one of the two out",
					l.Name, l.Policy.Algorithm())
			}
		}
		f.Redis.State = filepath.Join(f.State, layoutName(f.Redis.stateStem()))
		if f.Redis.InFlight > 0 {
			d.Fail(node, "state: redis has in_flight, and a file cannot keep the counts of WEIR.ENTER: leave one of the two out")
		}
	}
	for i := range f.Rules {
		r := &f.Rules[i]
		switch {
		case !r.Counts():
			continue
		case r.Store != nil && r.Policy.Algorithm() == engine.AlgorithmConcurrency: // it owes the store nothing
		case r.Store != nil:
			r.Debts = filepath.Join(f.State, r.debtStem())
		case r.Spread:
			d.Fail(node, "state: the rule %s has spread, and a file cannot keep its bucket: leave spread or state out", r.Name)
		case spec.Logs(r.Policy.Algorithm()):
			d.Fail(node, "state: the rule %s counts by a sliding log, which a file cannot keep: use sliding-window, or leave state out", r.Name)
		default:
			r.State = filepath.Join(f.State, r.stateName())
		}
	}
}

// stateName returns the name of the rule's file. The name depends on what the rule counts and how, and on the layout of
// the file. It does not depend on the numbers of limits, because these can change within the file.
//
// A rule that changes in another way starts a new file. Processes with the previous rule or layout keep the previous
// file.
func (r *Rule) stateName() string { return layoutName(r.stateStem()) }

func layoutName(stem string) string {
	return fmt.Sprintf("%s.v%d%s", stem, sharedfile.LayoutVersion, stateSuffix)
}

// stateStem returns the beginning of the names that the file for Redis clients has in all layouts. No rule has a file
// whose name begins like this.
func (r *Redis) stateStem() string {
	hash := fnv.New64a()
	_, _ = fmt.Fprintf(hash, "%v\n%d\n%s", r.Longest, r.MaxKeys, r.Overflow) // never an error
	return fmt.Sprintf("redis~%016x", hash.Sum64())
}

// stateStem returns the beginning of the names that the rule's file has in all layouts.
func (r *Rule) stateStem() string {
	hash := fnv.New64a()
	_, _ = fmt.Fprintf(hash, "%v\n%v %v %q\n%d\n%s", r.Key, // never an error
		r.Policy.Algorithm(), r.Policy.IsAligned(), r.limitedTiers(), r.MaxKeys, r.Overflow)
	if room := r.room(); room > 0 {
		_, _ = fmt.Fprintf(hash, "\n%d", room)
	}
	if _, _, isCalendar := r.Policy.Calendar(); isCalendar {
		_, _ = fmt.Fprintf(hash, "\n%s", r.Policy.Kind())
	}
	return fmt.Sprintf("%s-%016x", r.Name, hash.Sum64())
}

// debtStem returns the beginning of the names of the rule's debt files. A rule cannot use its previous debt files if
// certain properties change. Some of these properties are in the name, and the others are in the file.
func (r *Rule) debtStem() string {
	hash := fnv.New64a()
	_, _ = fmt.Fprintf(hash, "%v\n%v %q\n%s", r.Key, // never an error
		r.Policy.Algorithm(), r.limitedTiers(), r.Store.Redacted())
	if r.StorePolicy() != r.Policy { // the debts are tokens of quotas
		_, _ = fmt.Fprint(hash, "\nquotas")
	}
	return fmt.Sprintf("%s-%016x", r.Name, hash.Sum64())
}

// limitedTiers returns the values of the tiers in the rule's file, in order. The order is a part of the file's name. In
// another order, the tokens of one tier would count for another tier.
func (r *Rule) limitedTiers() []string {
	if r.Tiers == nil || r.ByQuota() {
		return nil
	}
	return r.Tiers.Values[:len(r.Tiers.Policies)]
}

// OtherLayouts returns the rule's files in other layouts. Other versions of the program have left these files, or still
// use them.
func (r *Rule) OtherLayouts() []string { return otherLayouts(r.State, r.stateStem()) }

// OtherLayouts does for the files of Redis clients what [Rule.OtherLayouts] does for the files of a rule.
func (r *Redis) OtherLayouts() []string { return otherLayouts(r.State, r.stateStem()) }

func otherLayouts(state, stem string) []string {
	return slices.DeleteFunc(stateFiles(filepath.Dir(state)), func(path string) bool {
		return path == state || !strings.HasPrefix(filepath.Base(path), stem+".v")
	})
}

// FormerStates returns the files of Redis clients from times when longest, max_keys or overflow had another value.
func (r *Redis) FormerStates() []string {
	return slices.DeleteFunc(stateFiles(filepath.Dir(r.State)), func(path string) bool {
		name := filepath.Base(path)
		return !strings.HasPrefix(name, "redis~") || strings.HasPrefix(name, r.stateStem())
	})
}

// stateFileSuffix matches the part after the name of the rule in the name of a rule's file, in all versions of weir.
var stateFileSuffix = regexp.MustCompile(`^-[0-9a-f]{16}(\.v[0-9]+)?` + regexp.QuoteMeta(stateSuffix) + `$`)

// FormerStates returns the files of earlier rules with the same name. Such a rule differs in something else that is a
// part of the file's name ([Rule.stateName]).
func (r *Rule) FormerStates() []string {
	return slices.DeleteFunc(stateFiles(filepath.Dir(r.State)), func(path string) bool {
		rest, ok := strings.CutPrefix(filepath.Base(path), r.Name)
		return !ok || !stateFileSuffix.MatchString(rest) || strings.HasPrefix(filepath.Base(path), r.stateStem())
	})
}

// UnusedStates returns the files in the state folder that belong neither to a rule nor to Redis clients.
func (f *File) UnusedStates() []string {
	return slices.DeleteFunc(append(stateFiles(f.State), filesWithSuffix(debtSuffix, f.State)...), func(path string) bool {
		return f.Redis != nil && f.Redis.State == path || slices.ContainsFunc(f.Rules, func(r Rule) bool {
			return r.State == path || r.Debts != "" && strings.HasPrefix(path, r.Debts+".")
		})
	})
}

// stateFiles returns the tables in a folder, sorted by name. It returns none if the folder is "" or cannot be read.
func stateFiles(folder string) []string { return filesWithSuffix(stateSuffix, folder) }

func filesWithSuffix(suffix, folder string) (paths []string) {
	entries, _ := os.ReadDir(folder) // if a rule has a file there, opening the file reports the error
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), suffix) && !strings.HasPrefix(e.Name(), ".") {
			paths = append(paths, filepath.Join(folder, e.Name()))
		}
	}
	return paths
}

// StateOptions returns the options for a rule with a state folder. A server passes them to [Rule.NewLimiter].
func (r *Rule) StateOptions() []engine.Option { return stateOptions(r.State) }

// StateOptions returns the options for Redis clients with a state folder. A server passes them to [Redis.NewLimiter].
func (r *Redis) StateOptions() []engine.Option { return stateOptions(r.State) }

func stateOptions(path string) []engine.Option {
	if path == "" {
		return nil
	}
	return []engine.Option{engine.Shared(path), engine.ReplacePolicy()}
}
