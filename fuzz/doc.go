// Package fuzz has the tests of weir that do not belong to a single package: stress tests with real threads, floods of
// keys, and tests of properties with random inputs. The folders below it have the explorer of interleavings and the
// model of the protocol. Package fuzz is in a separate module, so that importers of weir do not require the modules
// that these tests need.
package fuzz
