package workload

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestKeys(t *testing.T) {
	seen := map[string]bool{}
	for _, from := range []uint64{0, 9_999_000, 1<<24 - 1000, 50_000_000} {
		for n := from; n < from+5000; n++ {
			key := string(appendKey(nil, n))
			require.True(t, len(key) >= 12 && len(key) <= 40, "%q", key)
			require.False(t, seen[key], "%q twice", key)
			seen[key] = true
		}
	}
}

func small(t *testing.T, name string, keys, requests int) Row {
	row, err := Find(name)
	require.NoError(t, err)
	row.Keys, row.Requests = keys, requests
	return row
}

func all(s *Stream) []string {
	keys := make([]string, s.Len())
	for i := range keys {
		keys[i] = strings.Clone(s.At(i))
	}
	return keys
}

func distinct(keys []string) map[string]int {
	counts := map[string]int{}
	for _, k := range keys {
		counts[k]++
	}
	return counts
}

func TestInTurn(t *testing.T) {
	row := small(t, "allowed-1k", 1000, 4000)
	before, requests := row.Load()
	assert.Same(t, before, requests)
	keys := all(requests)
	require.Len(t, keys, 4000)
	assert.Len(t, distinct(keys[:1000]), 1000)
	for pass := range 4 {
		assert.Equal(t, distinct(keys[:1000]), distinct(keys[1000*pass:1000*pass+1000]), "every key once")
		if pass > 0 {
			assert.NotEqual(t, keys[:1000], keys[1000*pass:1000*pass+1000], "in another order")
		}
	}
}

func TestZipf(t *testing.T) {
	row := small(t, "zipf-1m", 1000, 20_000)
	before, requests := row.Load()
	known := distinct(all(before))
	assert.Len(t, known, 1000)
	most := 0
	for key, n := range distinct(all(requests)) {
		assert.Contains(t, known, key)
		most = max(most, n)
	}
	// With 1,000 keys, the first key has 1/sum(k^-1.1) = 1/5.57 of the requests.
	assert.InDelta(t, 20_000/5.57, most, 300)
}

func TestUniform(t *testing.T) {
	row := small(t, "uniform-10m", 1000, 20_000)
	_, requests := row.Load()
	counts := distinct(all(requests))
	assert.Len(t, counts, 1000)
	for key, n := range counts {
		assert.InDelta(t, 20, n, 30, key)
	}
}

func TestFresh(t *testing.T) {
	row := small(t, "churn", 1000, 500)
	before, requests := row.Load()
	keys := append(append(all(before), all(requests)...), all(row.Next(1))...)
	assert.Len(t, distinct(keys), 2000, "no key comes twice, in no pass")
}

// In each tenth of the middle of the stream, about half of the requests exceed their visitor's limit.
func TestMixed(t *testing.T) {
	row := small(t, "mixed", 1000, 1000*asked)
	before, requests := row.Load()
	keys, known := all(requests), distinct(all(before))
	require.Len(t, keys, 1000*asked)
	counts, refused := map[string]int{}, make([]int, 10)
	for i, key := range keys {
		assert.NotContains(t, known, key)
		if counts[key]++; counts[key] > asked/2 {
			refused[10*i/len(keys)]++
		}
	}
	assert.Len(t, counts, 1000)
	for key, n := range counts {
		assert.Equal(t, asked, n, key)
	}
	for i := 2; i < 8; i++ {
		assert.InDelta(t, 0.5, float64(refused[i])/float64(len(keys)/10), 0.15, "tenth %d", i)
	}
	for key := range distinct(all(row.Next(1))) {
		assert.NotContains(t, counts, key, "in another pass")
	}
}

// The requests are the same in every process. Otherwise ratios would compare different work.
func TestLoadsAreTheSame(t *testing.T) {
	row := small(t, "zipf-1m", 1000, 2000)
	_, a := row.Load()
	_, b := row.Load()
	assert.Equal(t, all(a), all(b))
}

func TestFind(t *testing.T) {
	for _, name := range Names() {
		row, err := Find(name)
		assert.NoError(t, err)
		assert.Equal(t, name, row.Name)
	}
	_, err := Find("zipf")
	assert.ErrorContains(t, err, `row "zipf": did you mean zipf-1m? want one of allowed-1, `)
	_, err = Find("uniform")
	assert.ErrorContains(t, err, "did you mean uniform-10m?")
	_, err = Find("")
	assert.ErrorContains(t, err, `row "": want one of`)
}
