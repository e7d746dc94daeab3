package envoy

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/testlog"
	"github.com/weir-go/weir/redislimit"
)

func withPlans(folder, limit, more string) string {
	return file("a: " + limit + fmt.Sprintf(", quotas: {file: %q, every: 1s%s}", filepath.Join(folder, "plans.csv"), more))
}

func writePlans(t *testing.T, folder, text string) {
	t.Helper()
	name := filepath.Join(folder, "plans.csv")
	require.NoError(t, os.WriteFile(name+"~", []byte(text), 0o600))
	require.NoError(t, os.Rename(name+"~", name))
}

func without(t *testing.T) *Service {
	s, _ := newService(t, "", Options{})
	return s
}

// TestQuotas: with every algorithm, each value can have its own limit. Other values have the rule's limit, or are
// refused.
func TestQuotas(t *testing.T) {
	for _, algorithm := range []string{"fixed-window", "token-bucket", "sliding-window", "sliding-log", "batch-refill"} {
		t.Run(algorithm, func(t *testing.T) {
			folder := t.TempDir()
			numbers, limit, more := "8/h", "unit: hour, requests_per_unit: 3, algorithm: "+algorithm, ""
			switch algorithm {
			case "batch-refill":
				numbers = "3/h,8"
			case "sliding-log":
				more = ", max: 100"
			}
			writePlans(t, folder, "anna,"+numbers+"\nberta,unlimited\ncarl,0\n")
			s, _ := newService(t, withPlans(folder, limit, more), Options{})
			assert.Equal(t, 8, admitted(t, s, 8, "a=anna"))
			assert.Equal(t, 12, admitted(t, s, 12, "a=berta"))
			assert.Equal(t, 0, admitted(t, s, 1, "a=carl"))
			assert.Equal(t, 3, admitted(t, s, 12, "a=dora"))
			answer := ask1(t, s, "d: a=anna +0")
			assert.EqualValues(t, 8, answer.GetStatuses()[0].GetCurrentLimit().GetRequestsPerUnit())

			require.NoError(t, s.SetConfig(compile(t, withPlans(folder, limit, more+", unknown: refuse"))))
			assert.Equal(t, 0, admitted(t, s, 1, "a=emil"))
			if algorithm != "fixed-window" { // a fixed window counts what it refuses, as envoyproxy/ratelimit does
				assert.Equal(t, 0, admitted(t, s, 1, "a=anna"))
			}
			// Counts survive while a rule has no quotas for a time.
			require.NoError(t, s.SetConfig(compile(t, file("a: unit: hour, requests_per_unit: 9, algorithm: "+algorithm))))
			assert.Equal(t, 1, admitted(t, s, 12, "a=anna"))
			require.NoError(t, s.SetConfig(compile(t, withPlans(folder, limit, more))))
			assert.Equal(t, 0, admitted(t, s, 1, "a=anna"))
			assert.Equal(t, 0, admitted(t, s, 1, "a=dora"))
		})
	}
}

// TestQuotasOfPlans: a file of limits may name plans, including plans per calendar month.
func TestQuotasOfPlans(t *testing.T) {
	folder := t.TempDir()
	writePlans(t, folder, "key,plan\nanna,free\nberta,paid\n")
	s, _ := newService(t, withPlans(folder, bucket5, ", plans: {free: {rate: 2/h}, paid: {rate: 7/h, burst: 9}}"), Options{})
	assert.Equal(t, 2, admitted(t, s, 12, "a=anna"))
	assert.Equal(t, 9, admitted(t, s, 12, "a=berta"))
	s, _ = newService(t, withPlans(folder, "unit: month, requests_per_unit: 5, zone: Europe/Berlin",
		", plans: {free: {rate: 2/month}, paid: {rate: unlimited}}"), Options{})
	assert.Equal(t, 2, admitted(t, s, 12, "a=anna"))
	assert.Equal(t, 12, admitted(t, s, 12, "a=berta"))
	assert.Equal(t, 5, admitted(t, s, 12, "a=carl"))
}

// TestQuotasChange: a changed file of limits becomes active soon, and earlier hits still count. A file with a mistake
// changes nothing. If the file is missing, its rules are refused.
func TestQuotasChange(t *testing.T) {
	folder := t.TempDir()
	err := without(t).SetConfig(compile(t, withPlans(folder, bucket5, "")))
	require.ErrorContains(t, err, "plans.csv: ")
	require.ErrorContains(t, err, "no such file")
	writePlans(t, folder, "")
	err = without(t).SetConfig(compile(t, withPlans(folder, bucket5, "")))
	require.ErrorContains(t, err, "it has no keys")

	writePlans(t, folder, "anna,8/h\n")
	var log testlog.Log
	s, _ := newService(t, withPlans(folder, bucket5, ""), Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	assert.Contains(t, log.String(), "keys=1 different=1")
	assert.Equal(t, 8, admitted(t, s, 12, "a=anna"))
	writePlans(t, folder, "anna,gold\n")
	require.Eventually(t, func() bool { return len(log.With("limits not read: the previous ones stay active")) == 1 }, time.Minute, 10*time.Millisecond)
	assert.Equal(t, 0, admitted(t, s, 1, "a=anna"))
	writePlans(t, folder, "anna,10/h\nberta,1/h\n")
	require.Eventually(t, func() bool { return len(log.With("keys=2")) == 1 }, time.Minute, 10*time.Millisecond)
	assert.Equal(t, 2, admitted(t, s, 12, "a=anna"))
	assert.Equal(t, 1, admitted(t, s, 12, "a=berta"))
}

// TestAReservationOutlivesALimit: a reservation is settled even if the limit of the value has changed since it was
// made.
func TestAReservationOutlivesALimit(t *testing.T) {
	for _, algorithm := range []string{"fixed-window", "token-bucket", "sliding-window", "sliding-log"} {
		for _, then := range []string{"anna,200/d", "anna,100/d,150", "berta,3/d"} {
			if algorithm != "token-bucket" && strings.Count(then, ",") > 1 {
				continue // this algorithm has no burst
			}
			folder := t.TempDir()
			limit := "unit: day, requests_per_unit: 50, algorithm: " + algorithm
			writePlans(t, folder, "anna,100/d\n")
			s, _ := newService(t, withPlans(folder, limit, ", max: 1000"), Options{Clock: func() time.Time { return time.Unix(1e9, 0) }})
			g, of := newGateway(t, s), "d: a=anna"
			id := g.reserve(of, 40)
			require.EqualValues(t, 60, remains(t, s, of), algorithm)
			writePlans(t, folder, then+"\n")
			require.NoError(t, s.SetConfig(compile(t, withPlans(folder, limit, ", max: 1000"))))
			before := remains(t, s, of)
			assert.True(t, g.commit(of, id, 30), algorithm)
			assert.Equal(t, before+10, remains(t, s, of), "%s: %s", algorithm, then)
		}
	}
}

// TestQuotasInAStore: if windows are counted in a store, limits of values may come from a file or from a hash in the
// store.
func TestQuotasInAStore(t *testing.T) {
	server := miniredis.RunT(t)
	server.HSet("plans", "anna", "free", "berta", "unlimited", "carl", "6/h")
	store, err := redislimit.Open(t.Context(), "redis://"+server.Addr(), redislimit.Timeout(10*time.Second))
	require.NoError(t, err)
	t.Cleanup(func() { _ = store.Close() })
	window := "unit: hour, requests_per_unit: 3"
	const hash = ", quotas: {hash: plans, every: 1s, plans: {free: {rate: 2/h}}}"
	s := storedService(t, file("a: "+window+hash), Options{Store: store, MemoBytes: 1 << 16})
	assert.Equal(t, 2, admitted(t, s, 12, "a=anna"))
	assert.Equal(t, 12, admitted(t, s, 12, "a=berta"))
	assert.Equal(t, 6, admitted(t, s, 12, "a=carl"))
	assert.Equal(t, 3, admitted(t, s, 12, "a=dora"))
	err = s.SetConfig(compile(t, file("a: "+bucket5+hash)))
	require.ErrorContains(t, err, "quotas: in a store only limits of a fixed window have them")
	err = without(t).SetConfig(compile(t, file("a: "+window+hash)))
	require.ErrorContains(t, err, "a hash needs a store: set REDIS_URL")
	server.Del("plans")
	err = s.SetConfig(compile(t, file("b: "+window+hash)))
	require.ErrorContains(t, err, "the hash plans: it has no keys")
}
