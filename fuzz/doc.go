// Package fuzz has the tests of weir that do not belong to a single package: stress tests with real threads, floods of
// keys, and tests of properties with random inputs. The folders below it have the explorer of interleavings and the
// model of the protocol. Package fuzz is in a separate module, so that weir does not require modules for tests only.
package fuzz
