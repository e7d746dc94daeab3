// Package replay answers the question "whom would this limit have refused?". It drives the engine with the requests of
// an access log. It also answers the question "which algorithm?", by driving several algorithms at the same time.
//
// The requests are decided in the order of their time stamps. Servers log a request when it ends and stamp it with its
// start, so package accesslog sorts the lines. If sorting changes the order, the requests are also decided in the order
// of the log, to show what sorting changes. In that order, a late request is decided at the latest stamp before it.
//
// A log is first replayed with little memory. If the log turns out to have many keys, or lines out of order, it is read
// again with more memory.
package replay
