// Package logs writes the log of weir serve so that it cannot harm the server.
//
// A line goes through a queue (queue.go). So if the reader of standard error is slow or has gone, no request is
// delayed. Only log lines are lost. Repeated warnings and errors are counted and summed up (repeats.go): an upstream
// that is down causes a line every ten seconds, not one for each request.
package logs
