//go:build !linux

package shard

// physicalMemory is unknown on this system, so only the address space bounds a table.
func physicalMemory() uint64 { return maxBytes }

// mapSlots returns nil, so that slots are on the Go heap.
func mapSlots(uint64, bool) (*memory, error) { return nil, nil }

func (*memory) collapse(func() bool) {}

func mappedBytes(uint64) uint64 { return 0 }
