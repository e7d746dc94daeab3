// Package replay answers the question "whom would this limit have refused?" by
// driving the engine with the requests of an access log, and "which algorithm?" by
// driving several side by side.
//
// The requests are taken in the order of the log, each at the latest time stamp
// seen so far: servers log a request when it ends but stamp it with its start, so
// logs run slightly backwards, and a limiter that had been in front of the
// server would have seen time only move forward.
package replay
