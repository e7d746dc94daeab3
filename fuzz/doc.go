// Package fuzz has the tests of weir that do not belong to a single package: stress with real threads, floods,
// properties of random inputs, and in the folders below, the explorer of interleavings and the model of the protocol.
// It is its own module, so that importers of weir do not require the modules that these tests need.
package fuzz
