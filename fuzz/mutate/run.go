package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A suite is a package whose tests are run against changes.
type suite struct {
	name   string
	folder string // relative to the root
	tags   string
	tests  string // a regular expression for the names of the tests
	parts  bool   // the suite has one test, and each of its subtests counts as a test
	of     string // the packages whose changes the suite may notice; "" means all
	slow   bool   // run when all changes have been tried against the other suites
}

// suites has the suites from the fastest to the slowest.
var suites = []suite{
	{"atomicbucket", "atomicbucket", "", ".", false, "atomicbucket", false},
	{"shard", "shard", "", ".", false, "atomicbucket shard", false},
	{"every step of a log", "atomicbucket", "explore", "EveryStep", false, "atomicbucket", false},
	{"every step", "shard", "explore", "EveryStep|AnAnswerFollows|TheOperations|TheSmallerSkew|FollowsItsUnit|ThatIsAborted", false, "atomicbucket shard", false},
	{"engine", "engine", "", ".", false, "engine", false},
	{"every step of a verb", "engine", "explore", "EveryStep", false, "engine", false},
	{"engine for the others", "engine", "", ".", false, "atomicbucket shard", true},
	{"models", "fuzz", "", "^Test([^SF]|S[^t])|^Fuzz", false, "", true}, // without stress and floods
	{"interleavings", "fuzz/explore", "explore", "^TestScenarios$", true, "atomicbucket shard", true},
}

func fast() int {
	if n := slices.IndexFunc(suites, func(s suite) bool { return s.slow }); n >= 0 {
		return n
	}
	return len(suites)
}

type binary struct {
	suite
	path  string
	root  string
	flags []string
	tests []test // from the fastest to the slowest
}

type test struct {
	name    string
	seconds float64
	reaches map[string]bool // the functions that it reaches; nil if they are not known
}

func (s suite) compile(root, overlay, path string) error {
	c := exec.Command("go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-tags="+s.tags, "-overlay", overlay, "-o", path, ".")
	c.Dir = filepath.Join(root, s.folder)
	if out, err := c.CombinedOutput(); err != nil && faulty.Match(out) && !strings.Contains(string(out), "could not import") {
		return fmt.Errorf("the tests of %s %w\n%s", s.folder, errUnbuilt, out)
	} else if err != nil {
		return fmt.Errorf("build the tests of %s: %w\n%s", s.folder, err, out)
	}
	return nil
}

// errUnbuilt means that the compiler has refused a text. Other errors of a build say nothing about the text.
var errUnbuilt = errors.New("do not build")

// reference builds a suite, runs it once with the unchanged code, and measures its tests. It reports tests that fail,
// and leaves them out.
func (s suite) reference(root, overlay, dir string) (*binary, error) {
	b := &binary{suite: s, root: root, path: filepath.Join(dir, strings.ReplaceAll(s.name, " ", "-")+".test"), flags: []string{"-test.short"}}
	if err := s.compile(root, overlay, b.path); err != nil {
		return nil, err
	}
	if help, _ := exec.Command(b.path, "-help").CombinedOutput(); strings.Contains(string(help), "rapid.nofailfile") {
		b.flags = append(b.flags, "-rapid.nofailfile", "-rapid.shrinktime=0s")
	}
	c := exec.Command(b.path, append([]string{"-test.v", "-test.run", s.tests}, b.flags...)...)
	c.Dir, c.Env = filepath.Join(root, s.folder), environment(0)
	begin := time.Now()
	out, err := c.CombinedOutput()
	// The tests report wall-clock time, which includes the time of other processes. So the times are converted to
	// processor time.
	part := processorTime(c) / time.Since(begin).Seconds()
	if err != nil && !strings.HasSuffix(string(out), "FAIL\n") {
		return nil, fmt.Errorf("the tests of %s stop without a change: %w\n%s", s.folder, err, out[max(0, len(out)-3000):])
	}
	for _, found := range failed.FindAllStringSubmatch(string(out), -1) {
		fmt.Printf("left out, because it fails without a change: %s of %s\n", found[1], s.name)
	}
	b.measure(string(out), part)
	if len(b.tests) == 0 {
		return nil, fmt.Errorf("no test of %s passes without a change: %w\n%s", s.folder, err, out[max(0, len(out)-3000):])
	}
	slices.SortStableFunc(b.tests, func(x, y test) int { return cmp.Compare(x.seconds, y.seconds) })
	return b, nil
}

// measure reads the passed tests and their times from the output of the tests. The time that is reported for a test
// leaves out parallel subtests, so a test takes at least as long as its subtests together.
func (b *binary) measure(out string, part float64) {
	parts := map[string]float64{}
	for _, found := range passed.FindAllStringSubmatch(out, -1) {
		seconds, _ := strconv.ParseFloat(found[3], 64)
		isPart := found[1] != ""
		if isPart == b.parts {
			b.tests = append(b.tests, test{name: found[2], seconds: part * seconds})
		}
		if name, _, _ := strings.Cut(found[2], "/"); isPart {
			parts[name] += part * seconds
		}
	}
	for i := range b.tests {
		b.tests[i].seconds = max(b.tests[i].seconds, parts[b.tests[i].name])
	}
}

var (
	passed = regexp.MustCompile(`(?m)^(    )?--- PASS: (\S+) \(([\d.]+)s\)$`)
	failed = regexp.MustCompile(`(?m)^ *--- FAIL: (\S+) `)
)

func (b *binary) pattern(tests []test) string {
	var names []string
	prefix := ""
	for _, t := range tests {
		name := t.name
		if test, part, isPart := strings.Cut(t.name, "/"); isPart {
			prefix, name = "^"+test+"$/", part
		}
		names = append(names, regexp.QuoteMeta(name))
	}
	return prefix + "^(" + strings.Join(names, "|") + ")$"
}

type runner struct {
	root, dir string
	schema    *schema
	watch     bool // find out which functions each test reaches

	binaries []func() (*binary, error) // a function for each suite, which builds the binary at its first call

	mutex   sync.Mutex
	catches map[string]map[string]int // how many changes of a function each test has noticed
}

// prepare builds the changed packages. The map catches has, for each function and test, the number of changes that the
// test noticed in earlier runs.
func prepare(root, dir string, all []file, watch bool, catches map[string]map[string]int) (*runner, error) {
	s, err := newSchema(root, dir, all)
	if err != nil {
		return nil, err
	}
	r := &runner{root: s.root, dir: dir, schema: s, watch: watch, catches: catches}
	for _, suite := range suites {
		r.binaries = append(r.binaries, sync.OnceValues(func() (*binary, error) { return r.binary(suite) }))
	}
	return r, nil
}

func (r *runner) binary(s suite) (*binary, error) {
	b, err := s.reference(r.root, r.schema.overlay, r.dir)
	if err == nil && r.watch {
		b.reach(r.dir)
	}
	return b, err
}

// reach finds out which functions each test reaches.
func (b *binary) reach(dir string) {
	list := filepath.Join(dir, "reached-"+filepath.Base(b.path))
	for i := range b.tests {
		t := &b.tests[i]
		c := exec.Command(b.path, append([]string{"-test.run", b.pattern([]test{*t})}, b.flags...)...)
		c.Dir, c.Env = filepath.Join(b.root, b.folder), append(environment(-1), reached+"="+list)
		err := c.Run()
		text, _ := os.ReadFile(list)
		os.Remove(list)
		if err != nil {
			continue // the test fails when it is watched, for example because it counts allocations
		}
		t.reaches = map[string]bool{}
		for line := range strings.Lines(string(text)) {
			t.reaches[strings.TrimSpace(line)] = true
		}
	}
}

// unbuilt reports whether a change is known not to build. For a change of a constant, only the trial shows this.
func (r *runner) unbuilt(m mutation) bool { return r.schema.unbuilt[r.schema.numbers[m.name()]] }

// The method noticed runs suites[from:to] against the change. It runs the fast suites together. It returns the suite
// and the test that notice the change. Without all, it leaves out tests that did not reach the function.
func (r *runner) noticed(m mutation, from, to int, all bool) (result, error) {
	if r.unbuilt(m) {
		return result{unbuilt, ""}, nil
	}
	build, remove, err := r.builder(m)
	if err != nil {
		return result{}, err
	}
	defer remove()
	for last := from; from < to; from = last {
		if last = from + 1; from < fast() {
			last = min(fast(), to)
		}
		tasks, err := r.tasks(m, from, last, all)
		if err != nil {
			return result{}, err
		}
		for _, t := range tasks {
			path, err := build(t.binary)
			if errors.Is(err, errUnbuilt) {
				return result{unbuilt, ""}, nil
			} else if err != nil {
				return result{}, err
			}
			test, err := t.try(path, r.schema.numbers[m.name()], t.tests)
			if err != nil {
				return result{}, err
			}
			if test != "" {
				r.caught(m, test)
				return result{t.name, test}, nil
			}
		}
	}
	return result{survives, suites[to-1].name}, nil
}

// builder returns two functions. The function build returns the path of a binary with the change. The function remove
// removes the files that build has made. Changes of functions share a binary. A change of a constant has its own
// binary, built when first needed.
func (r *runner) builder(m mutation) (build func(b *binary) (path string, err error), remove func(), err error) {
	if !m.isConstant() {
		return func(b *binary) (string, error) { return b.path, nil }, func() {}, nil
	}
	overlay := filepath.Join(r.dir, fmt.Sprintf("constant-%d", r.schema.numbers[m.name()]))
	made := []string{overlay, overlay + ".go"}
	built := map[*binary]string{}
	build = func(b *binary) (string, error) {
		if built[b] != "" {
			return built[b], nil
		}
		built[b] = fmt.Sprintf("%s-%d.test", overlay, len(built))
		made = append(made, built[b])
		return built[b], b.compile(r.root, overlay, built[b])
	}
	remove = func() {
		for _, name := range made {
			os.Remove(name)
		}
	}
	return build, remove, r.constant(m, overlay)
}

func (r *runner) constant(m mutation, overlay string) error {
	for _, f := range r.schema.files {
		if f.name == m.file {
			if err := os.WriteFile(overlay+".go", []byte(m.changed(f.source)), 0o600); err != nil {
				return err
			}
		}
	}
	return writeOverlay(overlay, map[string]string{filepath.Join(r.root, m.file): overlay + ".go"})
}

func (r *runner) caught(m mutation, test string) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	at := m.site()
	if r.catches[at] == nil {
		r.catches[at] = map[string]int{}
	}
	r.catches[at][test]++
}

type task struct {
	*binary
	tests []test
}

// tasks returns the tests of suites[from:to] in the order of trial. First come fast tests, and tests that have noticed
// changes of the same function or else of the same file. The tests come in rounds. Each round takes several times
// longer than the previous round. Without all, tests that did not reach the function are left out.
func (r *runner) tasks(m mutation, from, to int, all bool) ([]task, error) {
	type candidate struct {
		test
		of    *binary
		worth float64
	}
	inFunction, inFile := r.known(m)
	var candidates []candidate
	var total float64
	for i := from; i < to; i++ {
		if of := suites[i].of; of != "" && !slices.Contains(strings.Fields(of), filepath.Dir(m.file)) {
			continue
		}
		b, err := r.binaries[i]()
		if err != nil {
			return nil, err
		}
		for _, t := range b.tests {
			if !all && t.reaches != nil && !m.isConstant() && !t.reaches[m.site()] {
				continue
			}
			promise := 1 + 50*float64(inFunction[t.name]) + 5*float64(inFile[t.name])
			candidates = append(candidates, candidate{t, b, promise / (t.seconds + 0.01)})
			total += t.seconds
		}
	}
	slices.SortStableFunc(candidates, func(x, y candidate) int { return cmp.Compare(y.worth, x.worth) })
	var tasks []task
	var sum float64
	round := 0
	for i, upTo := 0, total/64; i < len(candidates); i++ {
		if sum += candidates[i].seconds; sum > upTo && i > 0 {
			round = len(tasks)
			for upTo = 4 * upTo; upTo < min(sum, total); {
				upTo *= 4
			}
		}
		at := round + slices.IndexFunc(tasks[round:], func(t task) bool { return t.binary == candidates[i].of })
		if at < round {
			at, tasks = len(tasks), append(tasks, task{binary: candidates[i].of})
		}
		tasks[at].tests = append(tasks[at].tests, candidates[i].test)
	}
	return tasks, nil
}

// The method known returns how many changes of the function, and of the file, each test has noticed.
func (r *runner) known(m mutation) (inFunction, inFile map[string]int) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	inFile = map[string]int{}
	for site, tests := range r.catches {
		if file, _, _ := strings.Cut(site, " "); file == m.file {
			for test, n := range tests {
				inFile[test] += n
			}
		}
	}
	return maps.Clone(r.catches[m.site()]), inFile
}
