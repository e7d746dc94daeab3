package peers

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/tsc"
)

// measurable returns the peers that this machine can measure. The others must say why it cannot.
func measurable(t *testing.T) []Peer {
	return slices.DeleteFunc(All(), func(p Peer) bool {
		if p.Name != DIYCounter || tsc.Trusted() {
			return false
		}
		_, err := p.New(Limit{Tokens: 5, Per: 240 * time.Hour, Burst: 5}, 10)
		require.ErrorContains(t, err, "does not trust this processor's counter")
		return true
	})
}

// Every peer enforces its configured limit for each key.
func TestPeersLimit(t *testing.T) {
	for _, p := range measurable(t) {
		t.Run(p.Name, func(t *testing.T) {
			if why := p.Cannot[Refuse]; why != "" {
				assert.NotEmpty(t, p.Cannot[Keys], "a peer that cannot refuse is here for reference only: %s", why)
				l, err := p.New(Limit{Tokens: 1e9, Per: time.Second, Burst: 1e9}, 10)
				require.NoError(t, err)
				assert.True(t, l.Allow("a"))
				return
			}
			l, err := p.New(Limit{Tokens: 5, Per: 240 * time.Hour, Burst: 5}, 10)
			require.NoError(t, err)
			for i := range 5 {
				assert.True(t, l.Allow("a"), "request %d", i+1)
			}
			for range 3 {
				assert.False(t, l.Allow("a"))
			}
			assert.Equal(t, p.Cannot[Keys] == "", l.Allow("b"), "keys are apart")
		})
	}
}

// A peer with keys distinguishes more keys than it was made for.
func TestPeersKeepKeysApart(t *testing.T) {
	for _, p := range measurable(t) {
		if p.Cannot[Keys] != "" {
			continue
		}
		l, err := p.New(Limit{Tokens: 1, Per: 240 * time.Hour, Burst: 1}, 1000)
		require.NoError(t, err)
		for _, want := range []bool{true, false} {
			for i := range 1500 {
				require.Equal(t, want, l.Allow(fmt.Sprintf("tenant-%d", i)), "%s: key %d", p.Name, i)
			}
		}
	}
}

func TestPeersIntroduceThemselves(t *testing.T) {
	names := map[string]bool{}
	for _, p := range All() {
		assert.False(t, names[p.Name], p.Name)
		names[p.Name] = true
		assert.NotEmpty(t, p.Module, p.Name)
		assert.NotEmpty(t, p.How, p.Name)
		for ability, why := range p.Cannot {
			assert.NotEmpty(t, why, "%s: %s", p.Name, ability)
		}
	}
	for _, a := range NotMeasured() {
		assert.NotEmpty(t, a.Reason, a.Name)
	}
}
