// Mutate changes packages atomicbucket, shard and engine in many small ways, one at a time, and reports the changes
// that no test notices.
//
//	go run ./mutate                      tries the changes that are not noticed in the history (make mutate)
//	go run ./mutate -fresh               tries all changes
//	go run ./mutate -only insert.go      tries the changes whose name contains a text, such as the name of a file
//	go run ./mutate -sample 10           tries ten changes that depend on the day only (make test-mutate)
//	go run ./mutate -score               tries no change, and prints the score of the history
//	go run ./mutate -list                lists the changes
//
// Mutate changes every atomic operation, condition, constant and variable, while the mutants of fuzz/explore break
// rules. Mutate runs tests until one fails, beginning with quick tests that have noticed similar changes. It skips
// changes that do not compile.
//
// Two lists of changes are not tried. Changes in equivalent.txt are explained. Changes in open.txt survive, are not
// explained yet, and count as not noticed. The score is the noticed share of all changes outside equivalent.txt. The
// exit status is 1 if a change in neither list survives.
//
// A change counts as new if its kind was never tried completely, or if it is in engine but not in noticed.txt: see
// isNew. A sample contains new and other changes. The program prints all survivors of a sample, and fails only if a
// survivor is not new.
//
// The history is the file bin/mutants.txt, which git ignores. A stopped run continues with the next run. An entry is
// valid as long as the text of its function, without comments, stays the same. It stays valid if tests, other functions
// or constants change. Samples and -fresh cover these cases. Survivors are tried again last. A sample neither reads nor
// writes the history.
//
//	mutations.go   the kinds of changes
//	order.go       changes of the order in which shared words are read and written
//	typed.go       changes that need the types of expressions
//	schema.go      one build of all changes
//	run.go         builds and measures the suites, and chooses the tests to run with one change
//	trial.go       runs tests with one change
//	lists.go       the lists of changes that are known to survive
//	history.go     the results of earlier runs
//	score.go       counts the changes that were noticed
package main

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

var packages = []string{"atomicbucket", "shard", "engine"}

type options struct {
	root, only, names             string
	history                       string
	sample, workers, suites       int
	seed                          uint64
	list, listed, fresh, score, v bool
}

func main() {
	var o options
	flag.StringVar(&o.root, "root", "..", "the root module")
	flag.IntVar(&o.sample, "sample", 0, "how many to try; 0 is all")
	flag.Uint64Var(&o.seed, "seed", uint64(time.Now().Unix()/86400), "which to try")
	flag.StringVar(&o.only, "only", "", "those whose name contains this text")
	flag.StringVar(&o.names, "names", "", "those whose names are the lines of this file")
	flag.StringVar(&o.history, "history", "../bin/mutants.txt", "the file of results")
	flag.BoolVar(&o.fresh, "fresh", false, "try also what the history has as noticed")
	flag.BoolVar(&o.score, "score", false, "print the score that the history has, and try none")
	flag.BoolVar(&o.list, "list", false, "list them, and try none")
	flag.BoolVar(&o.listed, "listed", false, "those of the lists, and no others: one that a test notices should not be there")
	flag.IntVar(&o.suites, "suites", len(suites), "how many of the suites of tests to use, the fastest ones")
	flag.IntVar(&o.workers, "workers", runtime.GOMAXPROCS(0), "how many to try at a time")
	flag.BoolVar(&o.v, "v", false, "a line for each")
	flag.Parse()
	status, err := o.run()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		status = 1
	}
	os.Exit(status)
}

func (o options) run() (status int, err error) {
	all, err := files(o.root, packages)
	if err != nil {
		return 1, err
	}
	if o.sample > 0 {
		o.history = ""
	}
	h, err := openHistory(o.history)
	if err != nil {
		return 1, err
	}
	every := mutations(all)
	unlisted := slices.DeleteFunc(slices.Clone(every), listed)
	chosen, err := o.choose(every)
	if err != nil {
		return 1, err
	}
	switch {
	case o.list:
		slices.SortFunc(chosen, func(a, b mutation) int { return cmp.Compare(a.name(), b.name()) })
		for _, m := range chosen {
			fmt.Println(m.name())
		}
		return 0, nil
	case o.score:
		t := h.tally(unlisted)
		for _, m := range t.survivors {
			fmt.Println("survives:", m.name())
		}
		t.print()
		return 0, nil
	case o.sample > 0:
		chosen = parts(chosen, spare*o.sample)
	case !o.fresh && !o.listed:
		t := h.tally(chosen)
		chosen = append(t.untried, t.survivors...)
	}
	s := score{begin: time.Now(), last: time.Now(), history: h, before: maps.Clone(h.known), noticed: map[string]int{}, verbose: o.v}
	if err := s.run(o, only(all, chosen), chosen); err != nil {
		return 1, err
	}
	s.print()
	if o.sample > 0 {
		return min(len(s.survivors)-s.fresh, 1), nil
	}
	h.tally(unlisted).print()
	return min(len(s.survivors), 1), h.close(unlisted)
}

// run builds the changes and tries the chosen changes, up to the size of a sample.
func (s *score) run(o options, all []file, chosen []mutation) error {
	dir, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	suites = suites[:min(max(o.suites, 1), len(suites))]
	r, err := prepare(o.root, dir, all, o.sample == 0 && len(chosen) > fewChanges, s.history.catches())
	if err != nil {
		return err
	}
	if o.sample > 0 {
		chosen = slices.DeleteFunc(chosen, r.unbuilt)
		chosen = parts(chosen, o.sample)
	}
	// A change that survived the fast suites in a stopped run now gets only the slow suites.
	fast, rest := fast(), []mutation{}
	if !o.fresh && o.sample == 0 {
		isFast := func(m mutation) bool { n := s.before[m.key].asked(); return n < fast || n == len(suites) }
		for _, m := range chosen {
			if !isFast(m) {
				rest = append(rest, m)
			}
		}
		chosen = slices.DeleteFunc(chosen, func(m mutation) bool { return !isFast(m) })
	}
	survivors, err := s.try(r, chosen, 0, fast, o.workers)
	if err != nil || fast == len(suites) {
		return err
	}
	_, err = s.try(r, append(survivors, rest...), fast, len(suites), o.workers)
	return err
}

// A sample of n changes chooses from spare * n changes, because some changes do not compile.
const spare = 4

func only(all []file, chosen []mutation) []file {
	wanted := map[string]bool{}
	for _, m := range chosen {
		wanted[m.name()] = true
	}
	for i := range all {
		for j := range all[i].units {
			u := &all[i].units[j]
			u.mutations = slices.DeleteFunc(u.mutations, func(m mutation) bool { return !wanted[m.name()] })
		}
	}
	return all
}

// parts returns a sample of n changes: half are noticed changes of package engine, a quarter are other changes that are
// not new, and the rest are new.
func parts(chosen []mutation, n int) []mutation {
	of := func(n int, is func(m mutation) bool) []mutation {
		found := slices.DeleteFunc(slices.Clone(chosen), func(m mutation) bool { return !is(m) })
		return found[:min(n, len(found))]
	}
	return slices.Concat(
		of((n+1)/2, func(m mutation) bool { return !m.isNew() && m.isOfEngine() }),
		of((n+2)/4, func(m mutation) bool { return !m.isNew() && !m.isOfEngine() }),
		of(n/4, mutation.isNew))
}

// With up to fewChanges changes, all tests are tried. It would take longer to find out which tests reach which
// functions.
const fewChanges = 100

// choose returns the changes that the options select, in an order that depends on the seed.
func (o options) choose(all []mutation) ([]mutation, error) {
	wanted := map[string]bool{}
	if o.names != "" {
		text, err := os.ReadFile(o.names)
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(string(text)) {
			wanted[strings.TrimSpace(line)] = true
		}
	}
	all = slices.DeleteFunc(slices.Clone(all), func(m mutation) bool {
		return listed(m) != o.listed || !strings.Contains(m.name(), o.only) || o.names != "" && !wanted[m.name()]
	})
	rand.New(rand.NewPCG(o.seed, 0)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	if o.sample == 0 { // changes that need a separate build are the slowest
		slices.SortStableFunc(all, func(a, b mutation) int {
			switch {
			case a.isConstant() == b.isConstant():
				return 0
			case b.isConstant():
				return -1
			}
			return 1
		})
	}
	return all, nil
}
