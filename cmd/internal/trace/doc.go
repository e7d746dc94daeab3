// Package trace keeps the requests that a rule counts, in the order of the log, so that they can be replayed many
// times. A request takes about five bytes. The first megabyte is in memory, and the rest is in a temporary file. So the
// memory does not grow with the log.
package trace
