// Mutate changes the code of packages shard and atomicbucket in every small way that it knows, one at a time, and tells
// which of the changes no test notices.
//
//	go run ./mutate -sample 10           ten of them, chosen by the day (make test)
//	go run ./mutate                      all of them (make mutate)
//	go run ./mutate -only insert.go      those of one file
//	go run ./mutate -journal results     all of them, but for those whose results the file has from an earlier run
//	go run ./mutate -list                what they are
//
// Where the mutants of fuzz/explore each break a rule on purpose, these are places: every atomic operation, every
// condition and every constant. Each is tried against the tests from the fastest to the slowest, until one fails. A
// change that does not build is none. A change that the list equivalent.txt explains is not tried. Those of the list
// open.txt are known to survive, and nobody has explained them yet: they are not tried and count as not noticed. The
// score is how many were noticed of all that are not explained. The exit status is 1 if another one was not, but of a
// sample.
//
//	mutations.go   which changes there are
//	schema.go      one build of all of them
//	run.go         one of them against the tests
//	lists.go       what is known of those that survive
//	journal.go     the results of a run that was stopped
//	score.go       how many were noticed
package main

import (
	"cmp"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

// packages are what is changed.
var packages = []string{"atomicbucket", "shard"}

// options are those of the command line.
type options struct {
	root, only, names       string
	journal                 string
	sample, workers, suites int
	seed                    uint64
	list, listed, v         bool
}

func main() {
	var o options
	flag.StringVar(&o.root, "root", "..", "the root module")
	flag.IntVar(&o.sample, "sample", 0, "how many to try; 0 is all")
	flag.Uint64Var(&o.seed, "seed", uint64(time.Now().Unix()/86400), "which to try")
	flag.StringVar(&o.only, "only", "", "those whose name contains this text")
	flag.StringVar(&o.names, "names", "", "those whose names are the lines of this file")
	flag.StringVar(&o.journal, "journal", "", "add the results to this file, and try none of which it has one")
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
	chosen, err := o.choose(mutations(all))
	if err != nil {
		return 1, err
	}
	if o.list {
		slices.SortFunc(chosen, func(a, b mutation) int { return cmp.Compare(a.name(), b.name()) })
		for _, m := range chosen {
			fmt.Println(m.name())
		}
		return 0, nil
	}
	dir, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	begin := time.Now()
	suites = suites[:min(max(o.suites, 0), len(suites))]
	r, err := prepare(o.root, dir, all, o.sample == 0)
	if err != nil {
		return 1, err
	}
	chosen = slices.DeleteFunc(chosen, r.unbuilt)
	s := score{all: len(chosen), begin: begin, last: time.Now(), noticed: map[string]int{}, verbose: o.v}
	chosen, err = s.resume(o.journal, chosen)
	if err != nil {
		return 1, err
	}
	if o.sample > 0 {
		chosen = chosen[:min(o.sample, len(chosen))]
	}
	s.chosen = len(chosen)
	err = s.try(r, chosen, o.workers)
	s.print()
	if o.sample > 0 { // a score, not a test
		return 0, err
	}
	return min(len(s.survivors), 1), err
}

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
	all = slices.DeleteFunc(all, func(m mutation) bool {
		return listed(m) != o.listed || !strings.Contains(m.name(), o.only) || o.names != "" && !wanted[m.name()]
	})
	rand.New(rand.NewPCG(o.seed, 0)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all, nil
}
