// Package suggest finds the limits that would have refused at most a share of the requests that a
// rule counts.
//
// It tries: every figure comes from a replay of those requests through the engine. For each of a
// ladder of bursts (or windows) it looks for the lowest rate by halves, among rates that people
// write. That pair was seen to refuse few enough, and the next lower rate too many.
//
// A rule is taken by itself. Which requests it counts, by which key and at which cost, is what package replay noted of
// its middleware's decisions; what a middleware does with a single limit is a take, and a refund where the answer says
// so, and that is what is replayed here.
package suggest
