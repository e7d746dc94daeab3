package report

import (
	"fmt"
	"io"
	"path/filepath"

	"github.com/weir-go/weir/bench/result"
	"github.com/weir-go/weir/internal/atomicfile"
)

// A chart is bars that stand alone in a file.
type chart struct {
	bars
	Caption string
}

// Charts are the files that WriteCharts writes.
const (
	SpeedChart  = "bench-speed.svg"
	MemoryChart = "bench-memory.svg"
)

// WriteCharts writes the charts of the documentation into a folder, which must exist: the time of a
// decision among 1,000 keys by library, and the memory for a key. What the run did not measure is
// an error.
func WriteCharts(folder string, r *result.Run) error {
	speed, ok := r.Row("allowed-1k", 1)
	if !ok {
		return fmt.Errorf("chart %s: the run has no row allowed-1k on one core", SpeedChart)
	}
	if len(r.Memory) == 0 {
		return fmt.Errorf("chart %s: the run measured no memory", MemoryChart)
	}
	times := chart{rowBars(speed), "Time of a decision as a multiple of the floor, and in nanoseconds; shorter is better"}
	bytes := chart{memoryBars(r), "Bytes a key, without its text; shorter is better"}
	if err := times.write(filepath.Join(folder, SpeedChart)); err != nil {
		return err
	}
	return bytes.write(filepath.Join(folder, MemoryChart))
}

func (c chart) write(path string) error {
	return atomicfile.Write(path, func(w io.Writer) error { return templates.ExecuteTemplate(w, "chart", c) })
}
