// Package logs writes the log of weir serve so that it cannot harm the server.
//
// A line goes through a queue (queue.go). So a reader of standard error that is slow or gone delays no request; only
// log lines are lost. Repeated warnings and errors are counted and summed up (repeats.go): an upstream that is down
// causes a line every ten seconds, not one for each request.
package logs
