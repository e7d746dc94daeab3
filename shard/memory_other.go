//go:build !linux

package shard

// physicalMemory is not known here; the address space is the only bound.
func physicalMemory() uint64 { return maxBytes }

// mapSlots has nothing better to offer than the Go heap.
func mapSlots(uint64, bool) (*memory, error) { return nil, nil }

// collapse is never called: nothing is mapped.
func (*memory) collapse(func() bool) {}

// mappedBytes returns 0: nothing is mapped.
func mappedBytes(uint64) uint64 { return 0 }
