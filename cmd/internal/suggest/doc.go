// Package suggest finds the limits that would have refused at most a share of the keys of a rule, or only those that
// ask for far more than all others.
//
// It tries: whom a limit refuses is found by the engine's algorithms, which decide every request of the log for every
// limit that is tried. These are numbers that people write, as so many tokens in a period, of which a bucket holds as
// many at most. That leaves one number to find for each period, and so the answer does not leap: where rate and burst
// are free, many pairs refuse the same keys, and a few requests decide which of them looks best.
//
// Keys are counted, and not requests: a single crawler makes any share of the requests, and asks for more the longer a
// log is.
//
// A rule is taken by itself. Which requests it counts, by which key and at which cost, is what package replay noted of
// its middleware's decisions; what a middleware does with a single limit is a take, and a refund where the answer says
// so, and that is what is replayed here.
package suggest
