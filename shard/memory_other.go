//go:build !linux

package shard

// physicalMemory is not known here; the address space is the only bound.
func physicalMemory() uint64 { return maxBytes }

// mapSlots has nothing better to offer than the Go heap.
func mapSlots(uint64) (*memory, error) { return nil, nil }

// mappedBytes returns 0: nothing is mapped.
func mappedBytes(uint64) uint64 { return 0 }
