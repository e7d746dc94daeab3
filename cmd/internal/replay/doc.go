// Package replay answers the question "whom would this limit have refused?" by
// driving the engine with the requests of an access log, and "which algorithm?" by
// driving several side by side.
//
// The requests are decided in the order of their time stamps. Servers log a request when it ends and stamp it with its
// start, so package accesslog sorts the lines. If sorting changes the order, the requests are also decided in the order
// of the log, each at the latest stamp before it, to show what sorting changes.
//
// A log is first replayed with little memory. If it turns out to have many keys or lines out of order, it is read again
// with more.
package replay
