package audit

import (
	"encoding/xml"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/cmd/internal/audit/fit"
	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/limitertest/check"
)

// TestWhatIsAdmittedTogether: a server checks the limit before it takes the token. So it admits too many concurrent
// requests, and the report says so.
func TestWhatIsAdmittedTogether(t *testing.T) {
	for name, c := range map[string]struct{ racy, counts bool }{"one step": {}, "all are counted": {racy: true, counts: true},
		"some are not counted": {racy: true}} {
		if testing.Short() && c.counts {
			continue // there is no limit to find, and the search takes seconds
		}
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSimulated(t, engine.TokenBucket(engine.PerSecond(5), 20), 0, 3)
				if c.racy {
					s.racy = func(key string) engine.Decision {
						d := s.limiter.Peek(s.limiter.Key(key), 1)
						time.Sleep(5 * time.Millisecond)
						if c.counts && d.Allowed {
							s.limiter.Charge(s.limiter.Key(key), 1)
						} else if d.Allowed {
							s.limiter.Take(key, 1)
						}
						return d
					}
				}
				r, err := Run(t.Context(), s, plain, target, Options{Requests: 600, Time: 30 * time.Second})
				require.NoError(t, err)
				var b strings.Builder
				require.NoError(t, r.WriteText(&b))
				text := b.String()
				m := r.Peak
				assert.Greater(t, m.Together, 20)
				assert.Equal(t, c.racy, m.TogetherAdmitted > 22, text)
				assert.Equal(t, c.racy, m.TooMany > 3, text)
				assert.Equal(t, c.racy, r.Faults > 0, text)
				assert.Equal(t, c.racy, strings.Contains(text, "more than the limit were admitted at one time"))
				if c.racy { // no limit makes such decisions, and the report names none
					assert.NotEmpty(t, r.Undecided, text)
					return
				}
				assert.Empty(t, r.Undecided, text)
				assert.LessOrEqual(t, uint64(m.Admitted), m.Allowed, text)
				assert.Equal(t, "bucket: 5 in 1s, 20", fmt.Sprintf("%s: %d in %s, %d", r.Kind, r.Tokens, r.Per, r.AtOnce), text)
				assert.Contains(t, text, "that were sent together were admitted; the limit has 20\n")
				assert.Equal(t, uint64(25), m.Allowed)
			})
		})
	}
}

// TestTheMostInAPeriod: requests of a key count only if they were certainly sent and answered within one period.
func TestTheMostInAPeriod(t *testing.T) {
	at := func(key string, sent, done int, allowed bool) fit.Request {
		return fit.Request{Key: key, Sent: time.Duration(sent), Done: time.Duration(done), Allowed: allowed}
	}
	log := []fit.Request{at("a", 0, 2, true), at("a", 5, 6, true), at("a", 7, 30, true), at("a", 8, 9, false), at("b", 1, 2, true),
		at("a", 9, 10, true), at("a", 11, 12, true)}
	assert.Equal(t, 3, maxAdmittedIn(log, 10))
	assert.Equal(t, 1, maxAdmittedIn(log, 3))
	assert.Equal(t, 5, maxAdmittedIn(log, 100))
	for kind, allowed := range map[check.Promise]uint64{check.Bucket: 25, check.BatchRefill: 25, check.FixedWindow: 10,
		check.AlignedWindow: 10, check.SlidingEstimate: 10, check.SlidingExact: 5} {
		found := fit.Result{Returned: true, Limit: fit.Limit{Kind: kind, Limit: check.Limit{Tokens: 5, Per: 10, Burst: 20}}}
		m := peakOf(log, 2, found)
		assert.Equal(t, Peak{Admitted: 3, Allowed: allowed, Within: "0s", Together: 2, TogetherAdmitted: 2, capacity: found.Limit.Capacity(kind)}, *m)
	}
}

// TestWhatIsExplainedIsNotTooMuch: some requests look like an excess, but may have been decided later. They are not
// reported as an excess.
func TestWhatIsExplainedIsNotTooMuch(t *testing.T) {
	found := fit.Result{Returned: true, Excess: 5, Limit: fit.Limit{Kind: check.Bucket, Limit: check.Limit{Tokens: 5, Per: time.Second, Burst: 20}}}
	assert.Zero(t, peakOf(nil, 0, found).TooMany)
	found.Misfits = 5
	assert.Equal(t, uint64(5), peakOf(nil, 0, found).TooMany)
}

// TestWhatIsUndecidedIsSaid: the text, the JSON and the rules of the report say what is undecided.
func TestWhatIsUndecidedIsSaid(t *testing.T) {
	found := fit.Result{Returned: true, Requests: 100, Admitted: 50, Shortest: 2400 * time.Millisecond, Longest: 2600 * time.Millisecond,
		Fewest: 15, Most: 15, Limit: fit.Limit{Kind: check.FixedWindow, Limit: check.Limit{Tokens: 15, Per: 2500 * time.Millisecond}}}
	assert.Empty(t, undecided(found))
	found.RunnerUp, found.RunnerUpMisfits = fit.Limit{Kind: check.SlidingExact, Limit: check.Limit{Tokens: 14, Per: time.Second}}, 1
	assert.Empty(t, undecided(found))
	found.RunnerUpMisfits, found.RefusalsUnsure = 13, true
	found.Longest = 2700 * time.Millisecond
	found.Misfits, found.Most = 12, 16
	r := &Report{}
	r.setResult(nil, found, nil)
	r.Rules = rules(found, r)
	var text, json strings.Builder
	require.NoError(t, r.WriteText(&text))
	require.NoError(t, r.WriteJSON(&json))
	for _, says := range []string{"the period: all from 2.4s to 2.7s explain as much", "the kind: a sliding exact, 14 in 1s, explains nearly as much",
		"the number of tokens: all from 15 to 16 explain as much",
		"whether refused requests are charged: a limit that charges none explains nearly as much", "the limit: no kind explains more than 88 % of the decisions"} {
		assert.Contains(t, text.String(), "\nundecided "+says+"\n")
		assert.Contains(t, text.String(), "\n# undecided: "+says+"\n")
		assert.Contains(t, json.String(), says)
	}
	assert.Contains(t, json.String(), `"per_to": "2.7s"`)
	assert.Contains(t, json.String(), `"at_once_to": 16`)
}

// TestThePicture: the picture has every request. Without a limit, drawing returns an error.
func TestThePicture(t *testing.T) {
	for _, policy := range []engine.Policy{engine.TokenBucket(engine.PerSecond(5), 20), engine.SlidingWindow(20, 2*time.Second)} {
		r := audited(t, policy, func(*simulated) {})
		var svg strings.Builder
		require.NoError(t, r.WriteSVG(&svg))
		var drawn struct {
			XMLName xml.Name
			Desc    string `xml:"desc"`
		}
		require.NoError(t, xml.Unmarshal([]byte(svg.String()), &drawn))
		assert.Equal(t, xml.Name{Space: "http://www.w3.org/2000/svg", Local: "svg"}, drawn.XMLName)
		assert.Contains(t, drawn.Desc, "explains")
		d, err := r.drawing()
		require.NoError(t, err)
		assert.Len(t, d.admitted, r.Admitted)
		assert.Len(t, d.refused, r.refusals())
		least, most := d.tokensLeft[0].Y, d.tokensLeft[0].Y
		for i, p := range d.tokensLeft {
			least, most = min(least, p.Y), max(most, p.Y)
			assert.GreaterOrEqual(t, p.X, d.tokensLeft[max(i-1, 0)].X)
		}
		assert.Equal(t, [2]float64{0, 20}, [2]float64{least, most})
		admitted, model, refused := countByColumn(r.log, r.result, r.log[0].Sent, r.log[len(r.log)-1].Done)
		sum := func(counts [columns]int) (all float64) {
			for _, n := range counts {
				all += float64(n)
			}
			return all
		}
		assert.Equal(t, float64(r.Admitted), sum(admitted))
		assert.Equal(t, float64(r.refusals()), sum(refused))
		assert.InEpsilon(t, sum(admitted), sum(model), 0.03, "the limit explains the log")
	}
	assert.ErrorContains(t, (&Report{}).WriteSVG(&strings.Builder{}), "no limit was found")
}

// TestRefusalsThatCount: the report says that a server charges refused requests.
func TestRefusalsThatCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const tokens, per = 15, 3 * time.Second
		var mu sync.Mutex
		var counted []time.Time
		decide := func() int {
			mu.Lock()
			defer mu.Unlock()
			now := time.Now()
			counted = slices.DeleteFunc(counted, func(at time.Time) bool { return now.Sub(at) >= per })
			refused := len(counted) >= tokens
			counted = append(counted, now)
			return map[bool]int{false: http.StatusOK, true: http.StatusTooManyRequests}[refused]
		}
		client := clientFunc(func(Request) (a Answer, err error) {
			a.Sent, a.Header = time.Now(), http.Header{}
			time.Sleep(time.Millisecond)
			a.Status = decide()
			time.Sleep(time.Millisecond)
			a.Done = time.Now()
			return a, nil
		})
		r, err := Run(t.Context(), client, plain, target, Options{Requests: 700, Time: 40 * time.Second})
		require.NoError(t, err)
		var text strings.Builder
		require.NoError(t, r.WriteText(&text))
		assert.Equal(t, "sliding exact: 15 in 3s, true", fmt.Sprintf("%s: %d in %s, %t", r.Kind, r.Tokens, r.Per, r.Refusals), text.String())
		assert.Contains(t, text.String(), "refused   requests are charged, too\n")
		assert.Contains(t, r.Rules, "# not the same: the server charges refused requests, too\n")
	})
}
