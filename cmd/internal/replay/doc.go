// Package replay answers the question "whom would this limit have refused?" by
// driving the engine with the requests of an access log, and "which algorithm?" by
// driving several side by side.
//
// The requests are taken in the order of their time stamps: servers log a
// request when it ends and stamp it with its start, so package accesslog sorts
// the lines. Where that changes something, they are decided in the order of
// the log as well, each at the latest stamp before it, to say what it changes.
//
// A log is replayed at the least cost first. When it turns out to have many
// keys, or lines out of order, or far out of order, it is read again.
package replay
