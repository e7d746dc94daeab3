package report

import (
	"fmt"
	"path/filepath"

	"github.com/weir-go/weir/bench/result"
	"github.com/weir-go/weir/bench/workload"
	"github.com/weir-go/weir/internal/atomicfile"
	"github.com/weir-go/weir/internal/chart"
)

// These are files that WriteCharts writes. The name of any other picture has the row and its number of cores.
const (
	SpeedChart  = "bench-speed.svg"
	MemoryChart = "bench-memory.svg"
)

func isShown(row *result.Row) bool {
	found, err := workload.Find(row.Name)
	return err == nil && found.Shown
}

// chartOf returns the name of the file with a row's chart.
func chartOf(row *result.Row) string {
	if row.Name == "full-1k" && row.Cores == 1 {
		return SpeedChart
	}
	return fmt.Sprintf("bench-%s-%d.svg", row.Name, row.Cores)
}

// WriteCharts writes the charts of the documentation into an existing folder. It returns an error if the run lacks the
// time of a decision with 1,000 keys, or the memory per key. It leaves out other rows that were not measured.
func WriteCharts(folder string, r *result.Run) error {
	speed, ok := r.Row("full-1k", 1)
	if !ok {
		return fmt.Errorf("chart %s: the run has no row full-1k on one core", SpeedChart)
	}
	if len(r.Memory) == 0 {
		return fmt.Errorf("chart %s: the run measured no memory", MemoryChart)
	}
	type file struct {
		name, subtitle string
		bars           bars
	}
	const times = "Time of a decision as a multiple of the floor, and in nanoseconds; shorter is better"
	files := []file{{SpeedChart, times, rowBars(speed)},
		{MemoryChart, "Bytes a key, without its text; shorter is better", memoryBars(r)}}
	for i := range r.Rows {
		if row := &r.Rows[i]; isShown(row) && row != speed {
			files = append(files, file{chartOf(row), times, rowBars(row)})
		}
	}
	for _, c := range files {
		picture := chart.Picture{Title: c.bars.Title, Subtitle: c.subtitle, Width: 720, Chart: c.bars.Chart()}
		if err := atomicfile.Write(filepath.Join(folder, c.name), picture.Write); err != nil {
			return err
		}
	}
	return nil
}
