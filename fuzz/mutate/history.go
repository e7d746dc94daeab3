package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/weir-go/weir/internal/atomicfile"
)

// A result has the suite and the test that noticed a change. If no test noticed the change, suite is one of the
// constants below. For a survivor, test is the last suite that was tried.
type result struct{ suite, test string }

// These are values of suite that are not names of suites.
const (
	unbuilt  = "does not build"
	survives = "survives"
)

// The method asked returns how many suites a change has survived.
func (r result) asked() int {
	return 1 + slices.IndexFunc(suites, func(s suite) bool { return r.suite == survives && s.name == r.test })
}

// A history is a file of results. A line has a function, the key of a change, the suite and the test, separated by
// tabs. If the function's text changes, the key changes, so the old result no longer counts. If a key has two lines,
// the later line counts. Results are appended during the run, which can be stopped and continued. The file is sorted
// when the run ends.
type history struct {
	name  string
	file  *os.File
	known map[string]entry // by the keys of changes
}

type entry struct {
	site string
	result
}

// openHistory reads the history in a file. Without a name, it is empty and not stored.
func openHistory(name string) (*history, error) {
	h := &history{name: name, known: map[string]entry{}}
	if name == "" {
		return h, nil
	}
	text, err := os.ReadFile(name)
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	if err := h.read(string(text)); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return h, nil
}

func (h *history) read(text string) error {
	for line := range strings.Lines(text) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(fields) != 4 {
			return fmt.Errorf("line %q: want a function, a key, a suite and a test, with tabs between them", line)
		}
		h.known[fields[1]] = entry{fields[0], result{fields[2], fields[3]}}
	}
	return nil
}

func (h *history) add(m mutation, r result) error {
	h.known[m.key] = entry{m.site(), r}
	if h.name == "" {
		return nil
	}
	if h.file == nil {
		file, err := os.OpenFile(h.name, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
		if err != nil {
			return err
		}
		h.file = file
	}
	_, err := fmt.Fprint(h.file, h.known[m.key].line(m.key))
	return err
}

func (e entry) line(key string) string {
	return strings.Join([]string{e.site, key, e.suite, e.test}, "\t") + "\n"
}

// close sorts the file, and removes entries of changes that no longer exist.
func (h *history) close(all []mutation) error {
	if h.name == "" {
		return nil
	}
	if h.file != nil {
		if err := h.file.Close(); err != nil {
			return err
		}
	}
	present := map[string]bool{}
	for _, m := range all {
		present[m.key] = true
	}
	var lines []string
	for key, e := range h.known {
		if present[key] {
			lines = append(lines, e.line(key))
		}
	}
	slices.Sort(lines)
	return atomicfile.Write(h.name, func(w io.Writer) error {
		_, err := io.WriteString(w, strings.Join(lines, ""))
		return err
	})
}

// catches returns how many changes of each function each test has noticed. It also counts changes that were noticed
// before the text of the function changed.
func (h *history) catches() map[string]map[string]int {
	counts := map[string]map[string]int{}
	for e := range maps.Values(h.known) {
		if e.suite == survives || e.suite == unbuilt || e.test == hung {
			continue
		}
		if counts[e.site] == nil {
			counts[e.site] = map[string]int{}
		}
		counts[e.site][e.test]++
	}
	return counts
}
