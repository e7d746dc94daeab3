package main

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"
)

// A score is what was noticed so far.
type score struct {
	verbose     bool
	begin, last time.Time
	all, chosen int // changes that no list has and that build; and those of them that are tried
	journal     journal

	mutex     sync.Mutex
	done      int            // now
	tried     int            // now, and before by the journal
	none      int            // that do not build
	noticed   map[string]int // by each suite
	survivors []string
}

// try tries changes, some at a time.
func (s *score) try(r *runner, chosen []mutation, workers int) error {
	queue := make(chan mutation, len(chosen))
	for _, m := range chosen {
		queue <- m
	}
	close(queue)
	errs := make(chan error, workers)
	for range workers {
		go func() {
			for m := range queue {
				suite, test, err := r.noticed(m)
				if err != nil {
					errs <- err
					return
				}
				if err := s.note(m, result{suite, test}); err != nil {
					errs <- err
					return
				}
			}
			errs <- nil
		}()
	}
	for range workers {
		if err := <-errs; err != nil {
			return err
		}
	}
	return nil
}

// resume counts the results that a journal has of changes, and returns those of which it has none.
func (s *score) resume(name string, chosen []mutation) (rest []mutation, err error) {
	var known map[string]result
	if s.journal, known, err = openJournal(name); err != nil {
		return nil, err
	}
	for _, m := range chosen {
		if r, ok := known[m.name()]; ok {
			s.count(m, r)
		} else {
			rest = append(rest, m)
		}
	}
	return rest, nil
}

// count counts a change.
func (s *score) count(m mutation, r result) {
	s.tried++
	switch r.suite {
	case unbuilt:
		s.none++
	case "":
		s.survivors = append(s.survivors, m.name())
	default:
		s.noticed[r.suite]++
	}
}

// note counts a change that has been tried, and tells from time to time how far things are.
func (s *score) note(m mutation, r result) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.done++
	s.count(m, r)
	if s.verbose || r.suite == "" {
		fmt.Printf("%-14s %-40s %s\n", cmp.Or(r.suite, "SURVIVES"), r.test, m.name())
	}
	if time.Since(s.last) > 30*time.Second {
		s.last = time.Now()
		spent := time.Since(s.begin)
		left := time.Duration(float64(spent) / float64(s.done) * float64(s.chosen-s.done))
		fmt.Printf("%d of %d changes, %d survive, %v, about %v to go\n", s.done, s.chosen, len(s.survivors), spent.Round(time.Second), left.Round(time.Second))
	}
	return s.journal.add(m.name(), r)
}

// print prints the score.
func (s *score) print() {
	tried := s.tried - s.none
	caught := tried - len(s.survivors)
	fmt.Printf("mutation score of shard and atomicbucket: %d of %d changes noticed, %.1f %%, by %v, %d do not build, in %v\n",
		caught, tried, percent(caught, tried), s.noticed, s.none, time.Since(s.begin).Round(time.Second))
	fmt.Printf("of %d changes in all %d are explained; %d of the others are known to survive: %.1f %% are noticed at best\n",
		s.all+len(equivalent)+len(open), len(equivalent), len(open), percent(s.all, s.all+len(open)))
	slices.Sort(s.survivors)
	for _, name := range s.survivors {
		fmt.Println("survives:", name)
	}
}

func percent(part, of int) float64 { return 100 * float64(part) / float64(max(of, 1)) }
