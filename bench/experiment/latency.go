package experiment

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/weir-go/weir/bench/peers"
	"github.com/weir-go/weir/bench/workload"
	"github.com/weir-go/weir/engine"
)

// These are the kinds of background work during the measured calls.
const (
	Quiet = "nothing else"
	Sweep = "the sweeper at work"
	Flood = "a flood of new keys"
)

// LatencyOf describes a measurement of latency.
type LatencyOf struct {
	Beside string        `json:"beside"`
	Empty  bool          `json:"empty"` // measures a call that does nothing, to show the noise of the machine
	For    time.Duration `json:"for"`
}

const every = 5 * time.Microsecond

// Percentiles are the percentiles of a curve.
var Percentiles = []float64{0, 25, 50, 75, 90, 95, 99, 99.5, 99.9, 99.95, 99.99, 99.995, 99.999, 100}

// Delays contains nanoseconds at each of Percentiles.
type Delays struct {
	// Service is the time of the call itself.
	Service []int64 `json:"service_ns"`
	// Response is the time from the planned start of the call to its end. It includes the wait for an earlier slow
	// call, which corrects for coordinated omission.
	Response []int64 `json:"response_ns"`
	Calls    int64   `json:"calls"`
	// Sweeps, Evictions and Flooded show that the planned background events happened.
	Sweeps    uint64 `json:"sweeps"`
	Evictions uint64 `json:"evictions"`
	Flooded   uint64 `json:"flooded"`
}

// MeasureLatency calls a limiter with a million keys at a fixed pace.
func MeasureLatency(of LatencyOf) (Delays, error) {
	row, err := workload.Find("zipf-1m")
	if err != nil {
		return Delays{}, err
	}
	before, requests := row.Load()
	// Keys are in use for a second after a request, so a flood of new keys finds no idle keys to replace.
	l, err := engine.New(engine.TokenBucket(engine.PerSecond(1), 10), engine.MaxKeys(row.Capacity),
		engine.Prefault(), engine.SweepInterval(interval(of.Beside)))
	if err != nil {
		return Delays{}, err
	}
	defer l.Close()
	for i := range before.Len() {
		l.Allow(before.At(i))
	}
	calls := peers.Limiter(l)
	if of.Empty {
		calls = nothing{}
	}
	var d Delays
	var stop atomic.Bool
	var beside sync.WaitGroup
	if of.Beside == Flood {
		beside.Go(func() { d.Flooded = flood(l, &stop) })
	}
	sweeps := l.Stats().Sweeps
	err = pace(calls, requests, of.For, &d)
	stop.Store(true)
	beside.Wait()
	stats := l.Stats()
	d.Sweeps, d.Evictions = stats.Sweeps-sweeps, stats.Evictions
	if err == nil && (of.Beside == Sweep && d.Sweeps == 0 || of.Beside == Flood && d.Flooded == 0) {
		err = fmt.Errorf("%s: there was none in %v", of.Beside, of.For)
	}
	return d, err
}

// interval returns the time between two sweeps. For the kind of work Sweep, this is the shortest possible time, so that
// the sweeper always works.
func interval(beside string) time.Duration {
	if beside == Sweep {
		return time.Millisecond
	}
	return time.Hour
}

type nothing struct{}

func (nothing) Allow(key string) bool { return key != "" }

func flood(l *engine.Limiter, stop *atomic.Bool) (n uint64) {
	for ; !stop.Load(); n++ {
		l.AllowKey(l.KeyUint64(n))
	}
	return n
}

// pace makes each call at its planned time. It spins until then.
func pace(l peers.Limiter, requests *workload.Stream, d time.Duration, delays *Delays) error {
	service, response := hdrhistogram.New(1, int64(time.Minute), 3), hdrhistogram.New(1, int64(time.Minute), 3)
	allowed, start := 0, time.Now()
	for due, i := time.Duration(0), 0; due < d; due, i = due+every, i+1 {
		began := time.Since(start)
		for began < due {
			began = time.Since(start)
		}
		if l.Allow(requests.At(i % requests.Len())) {
			allowed++
		}
		ended := time.Since(start)
		// The histograms reach up to a minute. No run is that long.
		if err := service.RecordValue(int64(ended - began)); err != nil {
			return err
		}
		if err := response.RecordValue(int64(ended - due)); err != nil {
			return err
		}
	}
	if allowed == 0 {
		return fmt.Errorf("not one call was allowed")
	}
	delays.Service, delays.Response, delays.Calls = curve(service), curve(response), service.TotalCount()
	return nil
}

func curve(h *hdrhistogram.Histogram) []int64 {
	points := make([]int64, len(Percentiles))
	for i, p := range Percentiles {
		points[i] = h.ValueAtPercentile(p)
	}
	return points
}
