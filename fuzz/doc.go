// Package fuzz has the tests that do not belong to a single package: stress tests with real threads, floods of keys,
// and properties with random inputs. Folders below it have the explorer of interleavings and the model of the protocol.
// The folder is a separate module, so that weir requires no modules for tests only.
package fuzz
