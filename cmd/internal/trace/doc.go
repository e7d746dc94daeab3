// Package trace keeps the requests that a rule counts, in the order of the log, so that they can be replayed many
// times. A request takes about five bytes. Beyond a megabyte they are in a temporary file, so memory does not grow with
// the log.
package trace
