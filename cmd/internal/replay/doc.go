// Package replay answers the question "whom would this limit have refused?" by
// driving the engine with the requests of an access log, and "which algorithm?" by
// driving several side by side.
//
// The requests are taken in the order of their time stamps. Servers log a
// request when it ends and stamp it with its start, so package accesslog sorts
// the lines as far as 16,384 of them reach. One that comes too late for that
// is taken at the latest stamp seen so far, and counted.
package replay
