package bench

import (
	"strings"
	"testing"

	"github.com/weir-go/weir/bench/experiment"
	"github.com/weir-go/weir/bench/measure"
	"github.com/weir-go/weir/bench/peers"
	"github.com/weir-go/weir/bench/workload"
)

// BenchmarkRow measures every row with weir, its floors and the peers, under names such as
// Row/allowed-1k/clock=tsc/of=weir. Every row counts how many requests are allowed, and fails if this does not match
// the row's name. Rows of ten million keys take seconds to set up, so -short leaves them out.
func BenchmarkRow(b *testing.B) {
	for _, row := range workload.Rows() {
		b.Run(row.Name, func(b *testing.B) {
			if row.Draw == workload.Mixed {
				b.Skip("half of all requests are admitted, not of any b.N of them: weir-bench measures it")
			}
			if testing.Short() && row.Large() {
				b.Skip("ten million keys")
			}
			names := measure.Of(&row)
			for _, p := range peers.All() {
				if !row.Batch {
					names = append(names, p.Name)
				}
			}
			for _, name := range names {
				benchSubject(b, &row, name)
			}
		})
	}
}

// benchSubject measures one subject. It makes the subject only once, although the testing package calls the benchmark
// function several times with different b.N.
func benchSubject(b *testing.B, row *workload.Row, name string) {
	if measure.Cannot(row, name) != "" {
		return
	}
	var requests *workload.Stream
	var decider measure.Decider
	release, pass := func() {}, 0
	defer func() { release() }()
	b.Run(label(name), func(b *testing.B) {
		if decider == nil {
			var before *workload.Stream
			before, requests = row.Load()
			d, end, err := measure.Open(row, name, requests)
			if err != nil {
				b.Fatal(err)
			}
			decider, release = d, end
			measure.Warm(d, before)
		}
		var sum measure.Sample
		b.ReportAllocs()
		b.ResetTimer()
		for left := b.N; left > 0; {
			n := left
			if row.Ends() {
				b.StopTimer()
				requests = row.Next(pass)
				pass++
				n = min(n, requests.Len())
				b.StartTimer()
			}
			sum.Add(measure.Count(n, decider, requests))
			left -= n
		}
		b.StopTimer()
		if wrong := experiment.Wrong(row, sum); wrong != "" {
			b.Fatal(wrong)
		}
	})
}

// label returns the name of a subject in the form that benchstat reads. For example, the label of "weir, TSC clock" is
// clock=tsc/of=weir.
func label(name string) string {
	of, clock, ok := strings.Cut(name, ", ")
	if ok && (measure.IsWeir(name) || measure.IsFloor(name)) {
		if strings.HasSuffix(clock, " clock") {
			return "clock=" + strings.ToLower(strings.TrimSuffix(clock, " clock")) + "/of=" + of
		}
		return "of=" + of + "-" + strings.ReplaceAll(clock, " ", "-")
	}
	return "of=" + strings.NewReplacer("/", "-", ", ", "-").Replace(name)
}
