//go:build explore

package model

import (
	_ "embed"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var large = flag.Bool("large", false, "check the larger configurations too")

//go:embed table.pml
var table []byte

// A configuration is one run of the checker, for the model with these bounds.
type configuration struct {
	name     string
	bounds   string // macros of table.pml
	progress bool   // also check that there is no cycle
}

var quick = []configuration{
	{"one taker", "TAKERS=1 TAKES=2 SLOTS=3 FIRST=31 KEYS=2 BURST=2 COSTS=2", true},
	{"two takers, three slots", "TAKERS=2 SLOTS=3 FIRST=31 BURST=2 COSTS=2", true},
	{"two takers of keys 0 and 1, three slots", "TAKERS=2 SLOTS=3 FIRST=31 KEY=0 KEYS=2", true},
	{"two takers twice, two keys", "TAKERS=2 TAKES=2 SLOTS=2 FIRST=31 KEYS=2 BURST=2", true},
	{"three takers, two keys, one slot", "TAKERS=3 SLOTS=1 FIRST=31 KEYS=2", true},
	{"three takers, two slots", "TAKERS=3 SLOTS=2 FIRST=31", true},
	{"three takers, two keys, refuse", "TAKERS=3 SLOTS=2 FIRST=31 KEYS=2 EVICTS=0", false},
	{"three takers, one may stop", "TAKERS=3 SLOTS=2 FIRST=31 STOPS=1", false},
	{"three takers, three unused slots", "TAKERS=3 SLOTS=3", true},
	{"four takers, one slot", "TAKERS=4 SLOTS=1 FIRST=31 BURST=3", true},
	{"two takers, reset and sweep", "TAKERS=2 SLOTS=2 FIRST=31 RESETTERS=1 SWEEPERS=1 BURST=2", true},
	{"two takers and a sweep, three times", "TAKERS=2 SLOTS=2 FIRST=31 SWEEPERS=1 TIMES=3 BURST=2", false},
	{"two takers, one may be killed, a sweep", "DIES=1 TAKERS=2 SLOTS=2 FIRST=31 SWEEPERS=1", true},
	{"a taker may be killed, its heir, two keys, two sweeps", "DIES=1 HEIRS=1 TAKERS=1 SLOTS=1 FIRST=31 KEYS=2 SWEEPERS=2", true},
	{"two takers, one may be killed, its heir, a sweep", "DIES=1 HEIRS=1 TAKERS=2 SLOTS=1 FIRST=31 SWEEPERS=1 BURST=2", true},
}

var larger = []configuration{
	{"three takers, two keys, one slot, two times", "TAKERS=3 SLOTS=1 FIRST=31 KEYS=2 TIMES=2", true},
	{"three takers, two keys, two slots", "TAKERS=3 SLOTS=2 FIRST=31 KEYS=2", true},
	{"three takers, two keys, one may stop", "TAKERS=3 SLOTS=2 FIRST=31 KEYS=2 STOPS=1", false},
	{"three takers, four slots", "TAKERS=3 SLOTS=4 FIRST=31", false},
	{"three takers twice, two slots", "TAKERS=3 TAKES=2 SLOTS=2 BURST=3", true},
	{"three takers and a reset, three slots", "TAKERS=3 SLOTS=3 FIRST=31 RESETTERS=1", false},
	{"four takers, two slots", "TAKERS=4 SLOTS=2", true},
	{"four takers, three slots", "TAKERS=4 SLOTS=3", false},
	{"two takers twice, three times", "TAKERS=2 TAKES=2 SLOTS=2 FIRST=31 TIMES=3 BURST=2 COSTS=2", true},
	{"two takers, two keys, reset and sweep", "TAKERS=2 SLOTS=2 FIRST=31 KEYS=2 RESETTERS=1 SWEEPERS=1", true},
	{"two takers, two keys and a sweep, three times", "TAKERS=2 SLOTS=2 FIRST=31 KEYS=2 SWEEPERS=1 TIMES=3 BURST=2 COSTS=2", false},
	{"three takers, one may be killed, a sweep", "DIES=1 TAKERS=3 SLOTS=2 SWEEPERS=1", false},
	{"a taker may be killed, its heir, two slots, two sweeps", "DIES=1 HEIRS=1 TAKERS=1 SLOTS=2 FIRST=31 KEYS=2 SWEEPERS=2", true},
}

type mutant struct {
	macro  string
	want   string // the assertion that fails
	bounds string
}

const livelock = "non-progress cycle"

var mutants = []mutant{
	{"KEY_BEFORE_STATE", "I2_charged_to_the_own_key", "SLOTS=1 KEYS=2 BURST=2 FIRST=16"},                // R1
	{"REFUSE_WITHOUT_REREAD", "I2_refused_on_the_own_bucket", "SLOTS=1 TAKES=2 KEYS=2 BURST=2 COSTS=2"}, // R2
	{"NO_VERSION", "I2_charged_to_the_own_key", "SLOTS=1 TAKES=2 KEYS=2 BURST=2"},                       // R3
	{"KEY_AFTER_TENT", "I2_charged_to_the_own_key", "SLOTS=2 KEYS=2 FIRST=2"},                           // R3
	{"SEARCH_BEFORE_PUBLISH", "I3_one_live_record", "SLOTS=2"},                                          // R4
	{"STOP_AT_FREE", "I3_one_live_record", "SLOTS=3 FIRST=18 VERSIONS=4 WRAPS=1"},                       // R5
	{"NO_KILL", "I3_one_live_record", "SLOTS=2"},                                                        // R6
	{"IGNORE_FAILED_KILL", "I3_one_live_record", "SLOTS=2"},                                             // R6
	{"BOTH_ABORT", livelock, "SLOTS=2 VERSIONS=4 WRAPS=1"},                                              // R6
	{"WAIT_FOR_CLAIM", livelock, "SLOTS=1"},                                                             // R6
	{"NO_MARK", "I1_admitted_to_a_bucket_that_has_it", "SLOTS=1 TAKERS=3 KEYS=2 TIMES=2"},               // R7
	{"NO_RAISE", "I2_debts_have_a_record", "SLOTS=1 TAKERS=3 KEYS=2 TIMES=3"},                           // R7
	{"MARK_BEFORE_SEARCH", "I1_admitted_to_a_bucket_that_has_it", "SLOTS=2 SWEEPERS=1 TIMES=2"},         // R7
	{"FULL_COMMIT", livelock, "SLOTS=1 KEYS=2 VERSIONS=4 WRAPS=1"},                                      // R8
	{"NO_HELP", livelock, "SLOTS=1"},                                                                    // I5
	{"LEAVE_TENT", "I5_held_by_calls_under_way", "DIES=1 TAKERS=1 SLOTS=1 SWEEPERS=1"},                  // R17
	{"LEAVE_CLAIMS", "I5_held_by_calls_under_way", "DIES=1 TAKERS=1 SLOTS=1 SWEEPERS=1"},                // R17
	{"SAME_NUMBER", "I5_held_by_calls_under_way", "DIES=1 HEIRS=1 TAKERS=1 SLOTS=1 SWEEPERS=1"},         // R17
	{"FREE_ANY_CLAIM", "I2_debts_have_a_record", "DIES=1 SLOTS=1 KEYS=2 SWEEPERS=1"},                    // R17
	{"FREE_ANOTHER_CLAIM", "I2_debts_have_a_record", "DIES=1 HEIRS=1 SLOTS=1 SWEEPERS=2"},               // R17
	{"LOCK_OF_THE_LIVING", "I2_debts_have_a_record", "DIES=1 SLOTS=1 KEYS=2 SWEEPERS=1"},                // R17
}

// The variable two limits the number of concurrent runs to two.
var two = make(chan struct{}, 2)

// TestModel (I1, I2, I3, I5, I7) checks every configuration completely.
func TestModel(t *testing.T) {
	tools(t)
	if *large {
		for _, c := range larger { // one after the other, because they need much memory
			t.Run(c.name, func(t *testing.T) { sound(t, c, "-O2") })
		}
	}
	for _, c := range quick {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			sound(t, c, "-O1")
		})
	}
}

// TestMutants checks that the model finds every broken rule.
func TestMutants(t *testing.T) {
	tools(t)
	for _, m := range mutants {
		t.Run(m.macro, func(t *testing.T) {
			t.Parallel()
			r := run(t, m.macro+" "+m.bounds, m.want == livelock, "-O0")
			assert.Equal(t, 1, r.errors)
			require.Equal(t, m.want, r.broken)
			t.Logf("caught: %-28s %s, after %v", m.macro, r.broken, r)
		})
	}
}

// tools skips the test if the checker cannot run, or fails it if CI is set.
func tools(t *testing.T) {
	for _, tool := range []string{"spin", "gcc"} {
		if _, err := exec.LookPath(tool); err == nil {
			continue
		}
		if os.Getenv("CI") != "" {
			t.Fatalf("there is no %s on the PATH", tool)
		}
		t.Skipf("there is no %s on the PATH: make test-mutants installs it; on Debian: apt-get install spin gcc libc6-dev", tool)
	}
}

// sound checks that the checker searches all states and finds no error.
func sound(t *testing.T, c configuration, optimize string) {
	r := run(t, c.bounds, c.progress, optimize)
	t.Logf("ok     %-60s %v", c.bounds, r)
	assert.Empty(t, r.broken, "the schedule:\n%s", r.schedule)
	assert.Zero(t, r.errors)
	assert.Empty(t, r.truncated, "not all states were searched")
}

type result struct {
	progress            bool
	states, transitions int
	depth, errors       int
	broken              string // the assertion that failed, or the constant livelock
	schedule            string // the steps that led to the failure
	truncated           string // why not all states were searched; "" if all were
	took                time.Duration
}

func (r result) String() string {
	checked := "assertions"
	if r.progress {
		checked = "assertions and progress"
	}
	return strconv.Itoa(r.states) + " states, " + strconv.Itoa(r.transitions) + " transitions, depth " + strconv.Itoa(r.depth) +
		", errors " + strconv.Itoa(r.errors) + ", " + checked + ", " + strconv.FormatFloat(r.took.Seconds(), 'f', 1, 64) + " s"
}

// run checks the model with these macros. If progress is set, it also checks that no process can continue forever. This
// second check doubles the states. Compiling with optimize often takes longer than the search.
func run(t *testing.T, macros string, progress bool, optimize string) result {
	two <- struct{}{}
	defer func() { <-two }()
	begin, dir := time.Now(), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "table.pml"), table, 0o600))
	defines := strings.Fields("-D" + strings.ReplaceAll(macros, " ", " -D"))
	mode, search := "-DSAFETY", []string{"-m20000", "-w20"} // -w: the hash table grows as needed
	if progress {
		mode, search = "-DNP", append(search, "-l")
	}
	tool(t, dir, "spin", append(append([]string{"-a"}, defines...), "table.pml")...)
	// MEMLIM is in MiB. Spin's own code has warnings.
	tool(t, dir, "gcc", optimize, "-w", mode, "-DCOLLAPSE", "-DMEMLIM=6000", "-o", "pan", "pan.c")
	out := tool(t, dir, "./pan", search...)

	r := result{
		progress:    progress,
		states:      number(t, out, `(\S+) states, stored`),
		transitions: number(t, out, `(\S+) transitions`),
		depth:       number(t, out, `depth reached (\d+)`),
		errors:      number(t, out, `errors: (\d+)`),
		truncated:   regexp.MustCompile(`(?m)^.*(too small|not completed|out of memory|memory limit|aborted).*$`).FindString(out),
		took:        time.Since(begin),
	}
	if m := regexp.MustCompile(`(?m)^pan:1: (?:assertion violated )?(.*) \(at depth`).FindStringSubmatch(out); m != nil {
		r.broken = m[1]
		r.schedule = tool(t, dir, "spin", append(append([]string{"-t"}, defines...), "table.pml")...)
	}
	return r
}

func tool(t *testing.T, dir, name string, args ...string) string {
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%v\n%s\nIf something is missing: .ci/install spin gcc libc6-dev", cmd, out)
	return string(out)
}

func number(t *testing.T, out, pattern string) int {
	m := regexp.MustCompile(pattern).FindStringSubmatch(out)
	require.NotNil(t, m, "no %q in\n%s", pattern, out)
	n, err := strconv.ParseFloat(m[1], 64) // large ones have an exponent
	require.NoError(t, err)
	return int(n)
}
