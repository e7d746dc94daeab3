// Package fuzz holds what shows that weir is right and is not a matter of one package: stress with
// real threads, floods, properties of random inputs, and, in the folders below, the explorer of
// interleavings and the model of the protocol. It is a module of its own, so that importers of weir
// require none of what these need.
package fuzz
