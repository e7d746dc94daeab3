package main

import (
	"cmp"
	"context"
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

// A suite is a package whose tests a change is tried against.
type suite struct {
	name   string
	folder string // below the root
	tags   string
	tests  string // which, a regular expression
	parts  bool   // the parts of its one test are tests of their own
	of     string // which package's changes it notices; "" is each
	slow   bool   // asked when all changes have been tried against the others
}

// suites are from the fastest to the slowest.
var suites = []suite{
	{"atomicbucket", "atomicbucket", "", ".", false, "atomicbucket", false},
	{"shard", "shard", "", ".", false, "", false},
	{"every step of a log", "atomicbucket", "explore", "EveryStep", false, "atomicbucket", false},
	{"every step", "shard", "explore", "EveryStep|AnAnswerFollows|TheOperations|TheSmallerSkew|FollowsItsUnit|ThatIsAborted", false, "", false},
	{"engine", "engine", "", ".", false, "", true},
	{"models", "fuzz", "", "^Test([^SF]|S[^t])|^Fuzz", false, "", true}, // without stress and floods
	{"interleavings", "fuzz/explore", "explore", "^TestScenarios$", true, "", true},
}

// fast returns how many suites are fast.
func fast() int {
	if n := slices.IndexFunc(suites, func(s suite) bool { return s.slow }); n >= 0 {
		return n
	}
	return len(suites)
}

// A binary is the built tests of a suite.
type binary struct {
	suite
	path  string
	root  string
	flags []string
	tests []test // from the fastest to the slowest
}

// A test is one of a binary, with the seconds that it takes of the unchanged code.
type test struct {
	name    string
	seconds float64
	reaches map[string]bool // functions; nil if that is not known
}

// compile builds the tests of a suite with an overlay.
func (s suite) compile(root, overlay, path string) error {
	c := exec.Command("go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-tags="+s.tags, "-overlay", overlay, "-o", path, ".")
	c.Dir = filepath.Join(root, s.folder)
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("build the tests of %s: %w\n%s", s.folder, err, out)
	}
	return nil
}

// reference builds a suite, runs it once on the unchanged code, and learns how long its tests take. One that fails says
// so, and is left out.
func (s suite) reference(root, overlay, dir string) (*binary, error) {
	b := &binary{suite: s, root: root, path: filepath.Join(dir, strings.ReplaceAll(s.name, " ", "-")+".test"), flags: []string{"-test.short"}}
	if err := s.compile(root, overlay, b.path); err != nil {
		return nil, err
	}
	if help, _ := exec.Command(b.path, "-help").CombinedOutput(); strings.Contains(string(help), "rapid.nofailfile") {
		b.flags = append(b.flags, "-rapid.nofailfile", "-rapid.shrinktime=0s")
	}
	c := exec.Command(b.path, append([]string{"-test.v", "-test.run", s.tests}, b.flags...)...)
	c.Dir = filepath.Join(root, s.folder)
	begin := time.Now()
	out, err := c.CombinedOutput()
	// The tests tell how long they took by the clock. What counts is the processor's time, of which others have a part.
	part := (c.ProcessState.UserTime() + c.ProcessState.SystemTime()).Seconds() / time.Since(begin).Seconds()
	for _, found := range failed.FindAllStringSubmatch(string(out), -1) {
		fmt.Printf("left out, because it fails without a change: %s of %s\n", found[1], s.name)
	}
	for _, found := range passed.FindAllStringSubmatch(string(out), -1) {
		if isPart := found[1] != ""; isPart == s.parts {
			seconds, _ := strconv.ParseFloat(found[3], 64)
			b.tests = append(b.tests, test{name: found[2], seconds: part * seconds})
		}
	}
	if len(b.tests) == 0 {
		return nil, fmt.Errorf("no test of %s passes without a change: %w\n%s", s.folder, err, out[max(0, len(out)-3000):])
	}
	slices.SortStableFunc(b.tests, func(x, y test) int { return cmp.Compare(x.seconds, y.seconds) })
	return b, nil
}

var (
	passed = regexp.MustCompile(`(?m)^(    )?--- PASS: (\S+) \(([\d.]+)s\)$`)
	failed = regexp.MustCompile(`(?m)^ *--- FAIL: (\S+) `)
)

// pattern returns the regular expression of tests.
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

// A runner tries changes.
type runner struct {
	root, dir string
	schema    *schema
	watch     bool // learn which functions each test reaches

	binaries []func() (*binary, error) // of each suite, built when it is needed for the first time

	mutex   sync.Mutex
	catches map[string]map[string]int // how many changes of a function each test has noticed
}

// prepare builds the changed packages. catches is how many changes of a function each test has noticed before.
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

// binary returns the built tests of a suite.
func (r *runner) binary(s suite) (*binary, error) {
	b, err := s.reference(r.root, r.schema.overlay, r.dir)
	if err == nil && s.slow && r.watch { // of the others it would take longer than it spares
		b.reach(r.dir)
	}
	return b, err
}

// reach learns which functions each test reaches.
func (b *binary) reach(dir string) {
	list := filepath.Join(dir, "reached-"+filepath.Base(b.path))
	for i := range b.tests {
		t := &b.tests[i]
		c := exec.Command(b.path, append([]string{"-test.run", b.pattern([]test{*t})}, b.flags...)...)
		c.Dir, c.Env = filepath.Join(b.root, b.folder), append(os.Environ(), variable+"=-1", reached+"="+list)
		err := c.Run()
		text, _ := os.ReadFile(list)
		os.Remove(list)
		if err != nil {
			continue // it notices that it is watched: one that counts allocations
		}
		t.reaches = map[string]bool{}
		for line := range strings.Lines(string(text)) {
			t.reaches[strings.TrimSpace(line)] = true
		}
	}
}

// unbuilt reports whether a change does not build. Of a constant that is not known before it is tried.
func (r *runner) unbuilt(m mutation) bool { return r.schema.unbuilt[r.schema.numbers[m.name()]] }

// noticed returns what notices the change, of the suites from one to before another.
func (r *runner) noticed(m mutation, from, to int) (result, error) {
	number := r.schema.numbers[m.name()]
	if r.unbuilt(m) {
		return result{unbuilt, ""}, nil
	}
	constant := m.isConstant()
	overlay := filepath.Join(r.dir, fmt.Sprintf("constant-%d", number))
	if constant {
		if err := r.constant(m, overlay); err != nil {
			return result{}, err
		}
		defer os.Remove(overlay)
		defer os.Remove(overlay + ".go")
	}
	for i := from; i < to; i++ {
		if of := suites[i].of; of != "" && of != filepath.Dir(m.file) {
			continue
		}
		b, err := r.binaries[i]()
		if err != nil {
			return result{}, err
		}
		path := b.path
		if constant {
			path = filepath.Join(r.dir, fmt.Sprintf("constant-%d.test", number))
			defer os.Remove(path)
			if err := b.compile(r.root, overlay, path); err != nil {
				return result{unbuilt, ""}, nil
			}
		}
		for _, chunk := range r.chunks(b, m) {
			test, err := b.try(path, number, chunk)
			if err != nil {
				return result{}, err
			}
			if test != "" {
				r.caught(m, test)
				return result{b.name, test}, nil
			}
		}
	}
	return result{survives, suites[to-1].name}, nil
}

// constant writes the overlay with a changed constant.
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

// chunks returns the tests of a binary in the order in which they are tried: those first that have noticed most changes
// of the same function, then the fastest, then others, then the slowest.
func (r *runner) chunks(b *binary, m mutation) [][]test {
	r.mutex.Lock()
	known := maps.Clone(r.catches[m.site()])
	r.mutex.Unlock()
	var total float64
	var favourites, reaching []test
	for _, t := range b.tests {
		if t.reaches != nil && !m.isConstant() && !t.reaches[m.site()] {
			continue
		}
		total, reaching = total+t.seconds, append(reaching, t)
		if known[t.name] > 0 {
			favourites = append(favourites, t)
		}
	}
	slices.SortStableFunc(favourites, func(x, y test) int { return cmp.Compare(known[y.name], known[x.name]) })
	favourites = favourites[:min(len(favourites), 6)]
	chunks := [][]test{favourites, nil, nil, nil}
	sum := 0.0
	for _, t := range reaching {
		if slices.ContainsFunc(favourites, func(f test) bool { return f.name == t.name }) {
			continue
		}
		sum += t.seconds
		i := 3
		if sum <= total/16 {
			i = 1
		} else if sum <= total/4 {
			i = 2
		}
		chunks[i] = append(chunks[i], t)
	}
	return slices.DeleteFunc(chunks, func(c []test) bool { return len(c) == 0 })
}

// hung is what is said where tests that have no end were stopped.
const hung = "(no end)"

// try runs tests with a change and returns the one that fails, or "". It gives them many times the processor time that
// they took of the unchanged code, and memory that would be enough for all. A change that makes them need more is
// noticed.
func (b *binary) try(path string, number int, tests []test) (string, error) {
	seconds := 0.0
	for _, t := range tests {
		seconds += t.seconds
	}
	processor := 2 + int(6*seconds)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute+time.Duration(processor)*10*time.Second)
	defer cancel()
	limits := fmt.Sprintf("ulimit -t %d; ulimit -v 12000000; exec \"$0\" \"$@\"", processor)
	args := append([]string{"-c", limits, path, "-test.failfast", "-test.timeout=0", "-test.run", b.pattern(tests)}, b.flags...)
	c := exec.CommandContext(ctx, "sh", args...)
	c.Dir, c.Env = filepath.Join(b.root, b.folder), append(os.Environ(), fmt.Sprintf("%s=%d", variable, number))
	out, err := c.CombinedOutput()
	if err == nil {
		return "", nil
	}
	if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) {
		return "", fmt.Errorf("%s: %w", b.name, err)
	}
	fails := failed.FindAllStringSubmatch(string(out), -1)
	for _, f := range fails {
		if strings.Contains(f[1], "/") || !b.parts {
			return f[1], nil
		}
	}
	return hung, nil
}
