// Package trace keeps the requests that a rule counts, in the order of the log, so that they can be replayed again and
// again. A request takes some five bytes. What is more than a megabyte is kept in a temporary file: memory does not
// grow with the log.
package trace
