package envoy

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A model counts as envoyproxy/ratelimit does, in exact arithmetic.
type model struct {
	counts map[string]uint64
}

type modelLimit struct {
	key    string
	limit  uint64
	window int64 // seconds
}

// ask returns the expected answer to a request, in the form of the function told.
func (m *model) ask(asks []modelAsk, now time.Time) string {
	statuses, code := make([]string, len(asks)), "OK: "
	for i, a := range asks {
		key := fmt.Sprint(a.key, now.Unix()/a.window)
		if a.back {
			m.counts[key] -= min(a.hits, m.counts[key])
		} else {
			m.counts[key] += a.hits
		}
		reset := time.Duration(a.window-now.Unix()%a.window) * time.Second
		if m.counts[key] > a.limit {
			statuses[i], code = fmt.Sprintf("over 0 %s", reset), "OVER: "
		} else {
			statuses[i] = fmt.Sprintf("ok %d %s", a.limit-m.counts[key], reset)
		}
	}
	return code + strings.Join(statuses, ", ")
}

type modelAsk struct {
	modelLimit
	hits uint64
	back bool
}

var modelRules = map[string]modelLimit{
	"two": {"", 2, 1}, "five": {"", 5, 60}, "hour": {"", 30, 3600}, "shut": {"", 0, 60}, "five_minutes": {"", 5, 300},
	"week": {"", 100, 7 * 24 * 3600}, "month": {"", 200, 30 * 24 * 3600}, "year": {"", 300, 365 * 24 * 3600},
}

const modelFile = `
domain: d
descriptors:
  - {key: two, rate_limit: {unit: second, requests_per_unit: 2}}
  - {key: five, rate_limit: {unit: minute, requests_per_unit: 5}}
  - {key: hour, rate_limit: {unit: hour, requests_per_unit: 30}}
  - {key: shut, rate_limit: {unit: minute, requests_per_unit: 0}}
  - {key: five_minutes, rate_limit: {unit: minute, unit_multiplier: 5, requests_per_unit: 5}}
  - {key: week, rate_limit: {unit: week, requests_per_unit: 100}}
  - {key: month, rate_limit: {unit: month, requests_per_unit: 200}}
  - {key: year, rate_limit: {unit: year, requests_per_unit: 300}}
`

// TestAgainstTheModel: random requests at random times get the answers of the model.
func TestAgainstTheModel(t *testing.T) {
	names := []string{"two", "five", "hour", "shut", "five_minutes", "week", "month", "year"}
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 1))
		s, c := newService(t, modelFile, Options{})
		m := &model{counts: map[string]uint64{}}
		for step := range 400 {
			wait := time.Duration(random.Int64N(int64([]time.Duration{
				time.Second, time.Minute, time.Hour, 40 * 24 * time.Hour,
			}[min(random.IntN(12), 3)])))
			if random.IntN(3) == 0 {
				c.set(c.read().Add(wait))
			}
			asks, line := randomRequest(random, names)
			response, err := s.ShouldRateLimit(context.Background(), asking(t, line))
			require.NoError(t, err)
			require.Equal(t, m.ask(asks, c.read()), told(response), "seed %d, step %d: %s at %s", seed, step, line, c.read())
		}
	}
}

func randomRequest(random *rand.Rand, names []string) (asks []modelAsk, line string) {
	var parts []string
	for range 1 + random.IntN(3) {
		name, value := names[random.IntN(len(names))], random.IntN(2)
		a := modelAsk{modelLimit: modelRules[name], hits: 1}
		part := fmt.Sprintf("%s=%d", name, value)
		switch random.IntN(6) {
		case 0:
			a.hits = random.Uint64N(8)
			part += fmt.Sprint(" +", a.hits)
		case 1:
			a.hits, a.back = random.Uint64N(8), true
			part += fmt.Sprint(" -", a.hits)
		}
		if random.IntN(8) == 0 {
			units := []string{"second", "minute", "hour", "day"}
			u := random.IntN(len(units))
			a.limit, a.window = uint64(random.IntN(9)), []int64{1, 60, 3600, 86400}[u]
			part += fmt.Sprintf(" limit=%d/%s", a.limit, units[u])
		}
		a.key = fmt.Sprint(name, "=", value, "/", a.window, "/")
		asks, parts = append(asks, a), append(parts, part)
	}
	return asks, "d: " + strings.Join(parts, " | ")
}
