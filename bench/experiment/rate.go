package experiment

import (
	"fmt"
	"math"
	"runtime"
	"time"

	"github.com/weir-go/weir/bench/measure"
	"github.com/weir-go/weir/bench/workload"
)

// RateOf names a row and subjects. If a row's keys take longer to make than to measure, several subjects share the keys
// in one process. They are then measured in short turns.
type RateOf struct {
	Row      string        `json:"row"`
	Subjects []string      `json:"subjects"`
	For      time.Duration `json:"for"` // for each subject
}

// A Rated is the result for one subject.
type Rated struct {
	measure.Sample
	Error string `json:",omitempty"` // why the figures must not be used
}

// slice returns the length of a turn. With many keys, a turn is long enough to replace everything in the caches.
// Otherwise it is short, so that noise affects all subjects equally.
func slice(row *workload.Row) time.Duration {
	if row.Keys >= 1_000_000 {
		return 20 * time.Millisecond
	}
	return 4 * time.Millisecond
}

// MeasureRate measures how long decisions take, for each subject.
func MeasureRate(of RateOf) (map[string]Rated, error) {
	row, err := workload.Find(of.Row)
	if err != nil {
		return nil, err
	}
	before, requests := row.Load()
	deciders := make([]measure.Decider, len(of.Subjects))
	for i, name := range of.Subjects {
		d, release, err := measure.Open(&row, name, requests)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		defer release()
		measure.Warm(d, before)
		deciders[i] = d
	}
	samples := make([]measure.Sample, len(deciders))
	if row.Ends() {
		for i, d := range deciders {
			samples[i] = measure.Once(d, requests)
		}
	} else {
		turn := of.For
		if len(deciders) > 1 {
			turn = min(slice(&row), of.For)
		}
		alternate(deciders, requests, turn, int(max(1, of.For/turn)), samples)
	}
	runtime.KeepAlive(before)
	results := make(map[string]Rated, len(samples))
	for i, s := range samples {
		results[of.Subjects[i]] = Rated{s, Wrong(&row, s)}
	}
	return results, nil
}

func alternate(deciders []measure.Decider, requests *workload.Stream, turn time.Duration, turns int,
	samples []measure.Sample) {
	for range turns {
		for i, d := range deciders {
			samples[i].Add(measure.For(turn, d, requests))
		}
	}
}

// Wrong returns what is wrong with the decisions of a row, or "". One decision in a thousand may be wrong, because
// bounded memory may have no room for a key.
func Wrong(row *workload.Row, s measure.Sample) string {
	want := row.Want()
	if s.Ops == 0 {
		return "no decision was made"
	}
	if math.Abs(s.AllowedFraction()-want) > 0.001 {
		return fmt.Sprintf("%.4g %% of the decisions were allowed: want %.0f %%", 100*s.AllowedFraction(), 100*want)
	}
	return ""
}
