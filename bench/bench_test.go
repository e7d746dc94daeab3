package bench

import (
	"strings"
	"testing"

	"github.com/weir-go/weir/bench/experiment"
	"github.com/weir-go/weir/bench/measure"
	"github.com/weir-go/weir/bench/peers"
	"github.com/weir-go/weir/bench/workload"
)

// BenchmarkRow measures weir, its floors and the peers on every row. A row fails if the numbers of admitted requests do
// not match its name. The flag -short leaves out rows of ten million keys.
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

// benchSubject measures one subject. It makes the subject only once, although package testing runs it several times.
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

// label returns the name of a subject for benchstat, such as clock=tsc/of=weir for "weir, TSC clock".
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
