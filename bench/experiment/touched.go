package experiment

import (
	"fmt"

	"github.com/weir-go/weir/bench/workload"
	"github.com/weir-go/weir/engine"
)

// TouchedOf is the parameter of MeasureTouched: which pages the limiter may use.
type TouchedOf struct {
	Huge bool `json:"huge"` // pages as the system gives them; otherwise only small pages
}

// touchedKeys is the number of keys of a small program. The program's limiter has the default capacity.
const touchedKeys = 10

// MeasureTouched makes a limiter without options, makes requests for a few keys, and returns how much of the limiter is
// in RAM.
func MeasureTouched(of TouchedOf) (Held, error) {
	if !of.Huge {
		if err := smallPages(); err != nil {
			return Held{}, err
		}
	}
	row, err := workload.Find("allowed-1k")
	if err != nil {
		return Held{}, err
	}
	_, requests := row.Load()
	heap, resident := used()
	l, err := engine.New(engine.TokenBucket(engine.PerSecond(100), 200))
	if err != nil {
		return Held{}, err
	}
	defer l.Close()
	for i := range touchedKeys {
		if !l.Allow(requests.At(i)) {
			return Held{}, fmt.Errorf("request %d was refused: want it admitted", i+1)
		}
	}
	h := Held{Keys: touchedKeys, Declared: int64(l.Stats().Bytes)}
	h.Heap, h.Resident = used()
	h.Heap, h.Resident = h.Heap-heap, h.Resident-resident
	return h, nil
}
