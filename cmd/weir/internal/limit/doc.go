// Package limit is the flags that say what is limited to what, the same for every
// command, and what they mean to the engine: the one place that knows the names of
// the algorithms.
package limit
