package experiment

import (
	"time"

	"github.com/weir-go/weir/bench/floor"
)

// TableOf describes a table for random compare-and-swap operations.
type TableOf struct {
	Bytes uint64        `json:"bytes"` // a power of two
	Huge  bool          `json:"huge"`  // huge pages
	For   time.Duration `json:"for"`
}

// A Tabled is the result of MeasureTable.
type Tabled struct {
	PerOp     float64 // nanoseconds
	HugeBytes uint64  // bytes in huge pages, as the kernel reports them
	HugeError string  `json:",omitempty"` // why the kernel does not report HugeBytes
}

// MeasureTable measures a random compare-and-swap on one processor.
func MeasureTable(of TableOf) (Tabled, error) {
	memory, release, err := floor.Map(of.Bytes, of.Huge)
	if err != nil {
		return Tabled{}, err
	}
	defer release()
	table := floor.NewRandom(memory)
	const chunk = 10_000
	ops, seed, began := 0, uint64(1), time.Now()
	for time.Since(began) < of.For {
		ops += table.Decide(seed*0x9e3779b97f4a7c15, chunk)
		seed++
	}
	t := Tabled{PerOp: float64(time.Since(began)) / float64(ops)}
	if t.HugeBytes, err = floor.Huge(memory); err != nil {
		t.HugeError = err.Error()
	}
	return t, nil
}
