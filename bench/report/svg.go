package report

import (
	"fmt"
	"path/filepath"

	"github.com/weir-go/weir/bench/result"
	"github.com/weir-go/weir/internal/atomicfile"
	"github.com/weir-go/weir/internal/chart"
)

// The files that WriteCharts writes.
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
	for _, c := range []struct {
		file, subtitle string
		bars           bars
	}{
		{SpeedChart, "Time of a decision as a multiple of the floor, and in nanoseconds; shorter is better", rowBars(speed)},
		{MemoryChart, "Bytes a key, without its text; shorter is better", memoryBars(r)},
	} {
		picture := chart.Picture{Title: c.bars.Title, Subtitle: c.subtitle, Width: 720, Chart: c.bars.Chart()}
		if err := atomicfile.Write(filepath.Join(folder, c.file), picture.Write); err != nil {
			return err
		}
	}
	return nil
}
