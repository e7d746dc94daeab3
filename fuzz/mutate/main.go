// Mutate changes the code of packages shard and atomicbucket in every small way that it knows, one at a time, and tells
// which of the changes no test notices.
//
//	go run ./mutate -sample 20           twenty of them, chosen by the day (make test)
//	go run ./mutate                      all of them (make test-all)
//	go run ./mutate -only insert.go      those of one file
//	go run ./mutate -list                what they are
//
// Where the mutants of fuzz/explore each break a rule on purpose, these are places: every atomic operation, every
// condition and every constant. Each is tried against the tests from the fastest to the slowest, until one fails. A
// change that does not build is none. A change that the list equivalent.txt explains is not tried. The score is how
// many of the others were noticed; the exit status is 1 if one was not.
//
//	mutations.go   which changes there are
//	run.go         one of them against the tests
package main

import (
	"cmp"
	_ "embed"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"
)

//go:embed equivalent.txt
var equivalent string

func main() {
	root := flag.String("root", "..", "the root module")
	sample := flag.Int("sample", 0, "how many to try; 0 is all")
	seed := flag.Uint64("seed", uint64(time.Now().Unix()/86400), "which to try")
	only := flag.String("only", "", "those whose name contains this text")
	list := flag.Bool("list", false, "list them, and try none")
	quick := flag.Bool("quick", false, "without the slowest tests, the interleavings: what survives may be caught by those")
	flag.Parse()

	all, err := mutations(*root, []string{"atomicbucket", "shard"})
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
	explained := explanations(equivalent)
	all = slices.DeleteFunc(all, func(m mutation) bool {
		_, known := explained[m.name()]
		return known || !strings.Contains(m.name(), *only)
	})
	if *sample > 0 && *sample < len(all) {
		rand.New(rand.NewPCG(*seed, 0)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		all = all[:*sample]
		slices.SortFunc(all, func(a, b mutation) int { return cmp.Compare(a.name(), b.name()) })
	}
	if *list {
		for _, m := range all {
			fmt.Println(m.name())
		}
		fmt.Printf("%d changes, %d more are explained\n", len(all), len(explained))
		return
	}
	os.Exit(try(*root, all, *quick))
}

// explanations reads the list of changes that no test can notice: a line each, its name, a tab and the reason.
func explanations(text string) map[string]string {
	reasons := map[string]string{}
	for line := range strings.Lines(text) {
		if name, reason, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok && !strings.HasPrefix(name, "#") {
			reasons[name] = strings.TrimSpace(reason)
		}
	}
	return reasons
}

// try tries the changes one after the other and prints what was noticed, and by what.
func try(root string, all []mutation, quick bool) (status int) {
	begin, noticed, none := time.Now(), map[string]int{}, 0
	var survivors []mutation
	for i, m := range all {
		by, err := m.noticed(root, quick)
		switch {
		case err != nil:
			fmt.Fprintln(os.Stderr, "mutate:", err)
			return 1
		case by == unbuilt:
			none++
		case by == "":
			survivors = append(survivors, m)
		default:
			noticed[by]++
		}
		fmt.Printf("%4d of %d  %-14s %s\n", i+1, len(all), cmp.Or(by, "SURVIVES"), m.name())
	}
	tried := len(all) - none
	fmt.Printf("mutation score of shard and atomicbucket: %d of %d changes noticed (%v), %d do not build, %v\n",
		tried-len(survivors), tried, noticed, none, time.Since(begin).Round(time.Second))
	for _, m := range survivors {
		fmt.Println("survives:", m.name())
	}
	return min(len(survivors), 1)
}
