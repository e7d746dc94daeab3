// Mutate changes the code of packages atomicbucket, shard and engine in every small way that it knows, one at a time,
// and reports which of the changes no test notices.
//
//	go run ./mutate                      those that the history does not have as noticed (make mutate)
//	go run ./mutate -fresh               all of them
//	go run ./mutate -only insert.go      those whose name contains a text, such as that of a file
//	go run ./mutate -sample 10           ten of them, chosen by the day, whatever the history has (make test)
//	go run ./mutate -score               none: what the history has
//	go run ./mutate -list                what they are
//
// Where the mutants of fuzz/explore each break a rule on purpose, these are places: every atomic operation, every
// condition, every constant, every variable. Each is tried against the tests, those first that promise most for the
// time that they take, until one fails. Changes that do not compile are skipped. A change that the list equivalent.txt
// explains is not tried. Those of the list open.txt are known to survive, and nobody has explained them yet: they are
// not tried and count as not noticed. The score is how many were noticed of all that are not explained. The exit status
// is 1 if another one was not.
//
// Kinds of changes that were never tried whole are new, and so are changes of engine that noticed.txt has not: see
// isNew. A sample has a part of each, prints those that survive, and fails only if one of the others does.
//
// The history is a file outside the repository, bin/mutants.txt. What a run finds is added to it as it comes, so a run
// may be stopped, and the next one goes on. An entry counts as long as the text of its function stays the same, but for
// comments. Changes of tests, of other functions and of constants do not void it: for them there are the samples, and
// -fresh. What survived is tried again, after all others. A sample neither reads nor writes it.
//
//	mutations.go   which changes there are
//	order.go       those of the order in which shared words are read and written
//	typed.go       those for which types have to be known
//	schema.go      one build of all of them
//	run.go         one of them against the tests
//	lists.go       what is known of those that survive
//	history.go     the results of earlier runs
//	score.go       how many were noticed
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

// packages are what is changed.
var packages = []string{"atomicbucket", "shard", "engine"}

// options are those of the command line.
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

// run tries changes, or lists them.
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

// run builds the changes and tries those that are chosen; of a sample, as many as it has.
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
	// A change that has survived the fast suites in a run which was stopped goes on with the slow ones.
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

// spare is how many times as many changes a sample is chosen from as it tries, since some do not compile.
const spare = 4

// only leaves in the files no changes but those that are chosen, so that they are built sooner.
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

// parts returns a sample: half of it changes of package engine that were noticed before, a quarter others that are not
// new, and the rest new ones.
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

// fewChanges are tried against all tests, rather than to learn which tests reach them.
const fewChanges = 100

// choose returns the changes that the options ask for, in an order that the seed decides.
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
	if o.sample == 0 { // those that need builds of their own are the slowest
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
