// Package fuzz has the tests of weir that do not belong to a single package: stress tests with real threads, floods of
// keys, and tests of properties with random inputs. The folders below it have the explorer of interleavings and the
// model of the protocol. Package fuzz is in a separate module. So a module that imports weir does not require the
// modules that only these tests need.
package fuzz
