// Package fuzz holds what shows that weir is right and is not a matter of one
// package: stress with real threads, floods, and, in the folders below, the
// reference models and the explorer of interleavings.
package fuzz
