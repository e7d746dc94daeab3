// Package replay answers two questions about an access log. To answer "whom would this limit have refused?", it passes
// the requests of the log to the engine. To answer "which algorithm?", it passes them to several algorithms at the same
// time.
//
// Servers log a request when it ends, with its start time, so package accesslog sorts the lines by time. If this
// changes the order, the requests are also decided in the order of the log. The difference shows the effect of sorting.
// In the order of the log, a late request is decided at the latest time in the lines before it.
//
// A log is first replayed with little memory. If it has many keys, or lines out of order, it is read again with more.
package replay
