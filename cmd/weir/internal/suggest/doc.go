// Package suggest finds the limits that would have refused at most a share of the requests that a
// rule counts.
//
// It tries: every figure comes from a replay of those requests through the engine. For each of a
// ladder of bursts (or windows) it looks for the lowest rate by halves, among rates that people
// write. That pair was seen to refuse few enough, and the next lower rate too many.
package suggest
