// Package logs writes the log of weir serve so that it cannot harm the server.
//
// A line goes through a queue (queue.go). If the reader of standard error is slow or has gone, log lines are lost, but
// no request is delayed. Repeated warnings and errors are counted and summed up (repeats.go). For example, an upstream
// that is down causes a line every ten seconds, not one for each request.
package logs
