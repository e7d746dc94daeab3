package main

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

type score struct {
	verbose     bool
	begin, last time.Time
	history     *history
	before      map[string]entry // the entries of the history before this run

	mutex     sync.Mutex
	done      int
	none      int            // changes that do not build
	noticed   map[string]int // changes that each suite noticed
	survivors []string
	fresh     int      // how many survivors are new
	weaker    []string // survivors that were noticed before, according to the history
}

// retries is how often all tests run again if a change that was noticed before survives, because some tests use new
// random numbers in each run.
const retries = 2

// wasNoticed reports whether a change was noticed before, according to the history.
func (s *score) wasNoticed(m mutation) bool {
	was := s.before[m.key].suite
	return was != "" && was != survives && was != unbuilt
}

// try runs suites[from:to] against changes, several at a time, and returns the survivors.
func (s *score) try(r *runner, chosen []mutation, from, to, workers int) (rest []mutation, err error) {
	queue := make(chan mutation, len(chosen))
	for _, m := range chosen {
		queue <- m
	}
	close(queue)
	errs := make(chan error, workers)
	for range workers {
		go func() {
			for m := range queue {
				found, err := r.noticed(m, from, to, false)
				for again := 0; err == nil && again < retries && to == len(suites) && found.suite == survives && s.wasNoticed(m); again++ {
					found, err = r.noticed(m, 0, to, true)
				}
				if err == nil {
					err = s.note(m, found, len(queue))
				}
				if err != nil {
					errs <- err
					return
				}
			}
			errs <- nil
		}()
	}
	for range workers {
		err = errors.Join(err, <-errs)
	}
	return slices.DeleteFunc(chosen, func(m mutation) bool { return s.history.known[m.key].suite != survives }), err
}

// note records the result of a tried change. It counts the change unless slow suites must still run against the change.
// From time to time it prints the progress.
func (s *score) note(m mutation, r result, left int) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	final := r.suite != survives || r.asked() == len(suites)
	switch {
	case !final:
	case r.suite == unbuilt:
		s.none++
	case r.suite == survives:
		s.survivors = append(s.survivors, m.name())
		if m.isNew() {
			s.fresh++
		}
		if was := s.before[m.key]; s.wasNoticed(m) {
			s.weaker = append(s.weaker, fmt.Sprintf("%s, which %s of %s noticed", m.name(), was.test, was.suite))
		}
	default:
		s.noticed[r.suite]++
	}
	if final {
		s.done++
	}
	if s.verbose || final && r.suite == survives {
		fmt.Printf("%-14s %-40s %s\n", r.suite, r.test, m.name())
	}
	if time.Since(s.last) > 30*time.Second {
		s.last = time.Now()
		fmt.Printf("%d changes done, %d survive, %d to go in this stage, %v\n", s.done, len(s.survivors), left, time.Since(s.begin).Round(time.Second))
	}
	return s.history.add(m, r)
}

func (s *score) print() {
	tried := s.done - s.none
	fmt.Printf("tried now: %d changes that build, of which %d are noticed, by %v, in %v\n",
		tried, tried-len(s.survivors), s.noticed, time.Since(s.begin).Round(time.Second))
	slices.Sort(s.survivors)
	for _, name := range s.survivors {
		fmt.Println("survives:", name)
	}
	if s.fresh > 0 {
		fmt.Printf("%d of those that survive are of kinds that were never tried whole, and fail no sample\n", s.fresh)
	}
	for _, name := range s.weaker {
		fmt.Println("not noticed any more:", name)
	}
}

type tally struct {
	noticed, unbuilt   int
	survivors, untried []mutation
}

func (h *history) tally(of []mutation) (t tally) {
	for _, m := range of {
		switch h.known[m.key].suite {
		case "":
			t.untried = append(t.untried, m)
		case unbuilt:
			t.unbuilt++
		case survives:
			t.survivors = append(t.survivors, m)
		default:
			t.noticed++
		}
	}
	return t
}

func (t tally) print() {
	missed := len(t.survivors) + len(open)
	tried := t.noticed + missed
	fmt.Printf("mutation score of atomicbucket, shard and engine: %.1f %%: of %d changes that were tried %d are noticed and %d are not\n",
		percent(t.noticed, tried), tried, t.noticed, missed)
	fmt.Printf("of %d changes in all %d are explained, %d do not build, %d were not tried yet\n",
		tried+len(equivalent)+t.unbuilt+len(t.untried), len(equivalent), t.unbuilt, len(t.untried))
}

func percent(part, of int) float64 { return 100 * float64(part) / float64(max(of, 1)) }
