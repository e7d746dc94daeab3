package experiment

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/weir-go/weir/bench/measure"
	"github.com/weir-go/weir/bench/peers"
	"github.com/weir-go/weir/bench/workload"
	"github.com/weir-go/weir/engine"
)

// MemoryOf names the subject whose memory is measured, with a million keys in use.
type MemoryOf struct {
	Subject string `json:"subject"`
}

// A Held is the memory that a limiter uses, in bytes.
type Held struct {
	Keys int `json:"keys"`
	// Resident is the growth of the process's memory in RAM since before the limiter was made, or 0 if the system does
	// not report it.
	Resident int64 `json:"resident"`
	Heap     int64 `json:"heap"`               // the same for the Go heap
	Declared int64 `json:"declared,omitempty"` // as the limiter itself reports it: weir's Stats
}

// MeasureMemory makes a limiter and a request for each of a million keys. The text of the keys counts only if the
// limiter copies it.
func MeasureMemory(of MemoryOf) (Held, error) {
	row, err := workload.Find("zipf-1m")
	if err != nil {
		return Held{}, err
	}
	// Keys must stay in use, because an idle key costs weir no memory.
	row.Refused = true
	before, _ := row.Load()
	heap, resident := used()
	d, release, err := measure.Open(&row, of.Subject, before)
	if err != nil {
		return Held{}, err
	}
	defer release()
	measure.Once(d, before)
	h := Held{Keys: row.Keys}
	h.Heap, h.Resident = used()
	h.Heap, h.Resident = h.Heap-heap, h.Resident-resident
	if l, ok := limiterOf(d).(*engine.Limiter); ok {
		h.Declared = int64(l.Stats().Bytes)
	}
	runtime.KeepAlive(before)
	return h, nil
}

func limiterOf(d measure.Decider) peers.Limiter {
	if k, ok := d.(measure.Keyed); ok {
		return k.Limiter
	}
	return nil
}

func used() (heap, resident int64) {
	runtime.GC()
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc), residentSize()
}

// residentSize returns the process's memory in RAM, or 0 without /proc/self/statm.
func residentSize() int64 {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	var size, pages int64
	if _, err := fmt.Sscan(string(text), &size, &pages); err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}
