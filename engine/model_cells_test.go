package engine

import (
	"math/rand/v2"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/testrace"
)

// A cell identifies a cell in the tables of docs/correctness.md.
type cell struct{ rates, verb, under string }

// makes adds the cell of a call to m.made.
func (m *model) makes(verb string, q *grants) {
	if m.made == nil || q == nil || verb == "enter" && m.kind.policy.algorithm != AlgorithmConcurrency {
		return
	}
	under, rates := "quota", "one rate"
	if strings.Contains(q.name, "tier ") {
		under = "tier"
	}
	if q == m.grants[0] {
		under = "own"
	}
	if m.kind.hasPrices() {
		rates = "several rates"
	}
	switch waits := m.promised > m.now; {
	case waits && m.policies > 0:
		under = "policy, waits"
	case waits:
		under = "waits"
	case m.policies > 0 && under == "quota":
		under = "quota, policy"
	case m.policies > 0:
		under = "policy"
	}
	m.made[cell{rates, verb, under}] = true
}

// TestTheModelMakesWhatTheTablesSay: docs/correctness.md marks a cell with M if and only if the programs of FuzzModel
// make such calls.
func TestTheModelMakesWhatTheTablesSay(t *testing.T) {
	testrace.OneGoroutine(t)
	page, err := os.ReadFile("../docs/correctness.md")
	require.NoError(t, err)
	_, text, _ := strings.Cut(string(page), "## Which verb, under what\n")
	text, _, _ = strings.Cut(text, "\n## ")
	heading := regexp.MustCompile(`^\*\*I\d\*\*, (.+)$`)
	said, of := map[cell]bool{}, []string{}
	rates := ""
	for line := range strings.Lines(text) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if m := heading.FindStringSubmatch(cells[0]); m != nil {
			rates, of = m[1], cells
		} else if len(cells) == len(of) && !strings.HasPrefix(cells[0], "-") {
			for i, letters := range cells[1:] {
				if strings.Contains(letters, "M") {
					said[cell{rates, cells[0], of[i+1]}] = true
				}
			}
		}
	}
	made := map[cell]bool{}
	for seed := range uint64(400) {
		random, program := rand.New(rand.NewPCG(seed, 28)), make([]byte, 600)
		for i := range program {
			program[i] = byte(random.Uint32())
		}
		m := newModel(t, program)
		m.made = made
		m.run()
	}
	assert.Equal(t, said, made, "the tables of correctness.md (expected), and what the programs make (actual)")
}
