// Package replay answers "whom would this limit have refused?" by driving the engine with the requests of an access
// log, and "which algorithm?" by driving several at the same time.
//
// Servers log a request when it ends and stamp it with its start, so package accesslog sorts the lines by time. If this
// changes the order, the requests are also decided in the order of the log, to show the effect. In that order, a late
// request is decided at the latest stamp before it.
//
// A log is first replayed with little memory. If it has many keys, or lines out of order, it is read again with more.
package replay
