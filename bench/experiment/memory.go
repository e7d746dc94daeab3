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

// A Held is the result, in bytes.
type Held struct {
	Keys int `json:"keys"`
	// Resident is by how much the process's memory in RAM has grown since before the limiter was made; 0 if the system
	// does not report it.
	Resident int64 `json:"resident"`
	Heap     int64 `json:"heap"`               // of the Go heap, likewise
	Declared int64 `json:"declared,omitempty"` // by the limiter itself: weir's Stats
}

// MeasureMemory makes a limiter and asks for a million keys. The text of the keys exists before and is not counted,
// unless the limiter copies it.
func MeasureMemory(of MemoryOf) (Held, error) {
	row, err := workload.Find("zipf-1m")
	if err != nil {
		return Held{}, err
	}
	// A limit under which keys stay in use: an idle one costs weir nothing.
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

// used returns the memory in use, after everything that is garbage has gone back to the system.
func used() (heap, resident int64) {
	runtime.GC()
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc), residentSize()
}

// residentSize returns the memory of the process that is in RAM, 0 on systems without /proc/self/statm.
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
