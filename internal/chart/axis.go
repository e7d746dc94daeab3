package chart

import (
	"math"
	"strconv"
)

// A Point is a place in a plot, given by numbers on its axes.
type Point struct{ X, Y float64 }

// An Axis is the horizontal or vertical axis of a plot. Linear, Log, FromZero and LogAround make axes. For any other
// axis, set the fields.
type Axis struct {
	Label string // what the numbers of the axis mean, "" for none; only the horizontal axis shows it
	Ticks []Tick
	// Place returns the position of a number. The start of the axis has the position 0, and the end has the position 1.
	Place func(float64) float64
}

// A Tick is a number that is written on an axis.
type Tick struct {
	At    float64
	Text  string
	Minor bool // left out on narrow screens
}

// Linear returns an axis between two numbers. Numbers outside the range are drawn at the ends of the axis. If the range
// is empty, all numbers are drawn at the start of the axis.
func Linear(from, to float64, ticks ...Tick) Axis {
	return Axis{Ticks: ticks, Place: func(v float64) float64 {
		if from == to {
			return 0
		}
		return clamp((v - from) / (to - from))
	}}
}

// Log returns a logarithmic axis from one number above 0 to a larger number. Numbers outside the range are drawn at the
// ends of the axis.
func Log(from, to float64, ticks ...Tick) Axis {
	low, high := math.Log10(from), math.Log10(to)
	return Axis{Ticks: ticks, Place: func(v float64) float64 {
		if v <= 0 {
			return 0
		}
		return clamp((math.Log10(v) - low) / (high - low))
	}}
}

func clamp(fraction float64) float64 { return min(1, max(0, fraction)) }

// FromZero returns an axis that begins at 0. It ends at the first tick that is not below the argument highest. The axis
// has up to six ticks, at multiples of 1, 2 or 5 times a power of ten. The argument step is the smallest distance
// between two ticks.
func FromZero(highest, step float64, text func(float64) string) Axis {
	if step = max(step, roundStep(highest/5)); step == 0 {
		step = 1 // nothing is above 0
	}
	count := max(1, math.Ceil(highest/step-1e-9))
	var ticks []Tick
	for i := 0.0; i <= count; i++ {
		ticks = append(ticks, Tick{At: i * step, Text: text(i * step)})
	}
	return Linear(0, count*step, ticks...)
}

// roundStep returns the smallest number of the sequence ..., 0.1, 0.2, 0.5, 1, 2, 5, 10, ... that is not below n. For 0
// it returns 0.
func roundStep(n float64) float64 {
	if n <= 0 {
		return 0
	}
	ten := math.Pow(10, math.Floor(math.Log10(n)))
	for _, m := range []float64{1, 2, 5} {
		if m*ten >= n*(1-1e-9) {
			return m * ten
		}
	}
	return 10 * ten
}

// LogAround returns a logarithmic axis that is just long enough for the numbers. The numbers must be above 0. The axis
// begins and ends at marks, which must increase; nil means the powers of ten. Up to five of the marks are ticks.
func LogAround(numbers, marks []float64, text func(float64) string) Axis {
	low, high := math.Inf(1), math.Inf(-1)
	for _, n := range numbers {
		low, high = min(low, n), max(high, n)
	}
	if len(numbers) == 0 {
		low, high = 1, 10
	}
	if marks == nil {
		for at := math.Floor(math.Log10(low)); at <= math.Ceil(math.Log10(high)); at++ {
			marks = append(marks, math.Pow(10, at))
		}
	}
	marks = marksAround(marks, low, high)
	from, to := min(low, marks[0]), max(high, marks[len(marks)-1])
	if from == to {
		to *= 10
	}
	const maxTicks = 5
	stride := (len(marks) + maxTicks - 1) / maxTicks
	var ticks []Tick
	for i := 0; i < len(marks); i += stride {
		ticks = append(ticks, Tick{At: marks[i], Text: text(marks[i])})
	}
	return Log(from, to, ticks...)
}

// marksAround returns the marks around the range from low to high. The first is the last mark at or below low, and the
// last is the first mark at or above high, as far as these marks exist.
func marksAround(marks []float64, low, high float64) []float64 {
	from, to := 0, len(marks)-1
	for from < to && marks[from+1] <= low {
		from++
	}
	for to > from && marks[to-1] >= high {
		to--
	}
	return marks[from : to+1]
}

// Short returns a number of at least 0 as a short text: 950, 1.2k, 3M.
func Short(n float64) string {
	unit := ""
	for _, u := range []string{"k", "M", "G", "T", "P", "E"} {
		if n < 999.5 { // three digits are written
			break
		}
		n, unit = n/1000, u
	}
	return strconv.FormatFloat(n, 'g', 3, 64) + unit
}
