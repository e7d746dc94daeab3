// Package logs writes the log of weir serve so that it cannot harm the server.
//
// A line goes through a queue (queue.go): a reader of standard error that is slow or gone holds up no request, and
// costs lines of the log only. Warnings and errors that repeat are counted and summed up (repeats.go): an upstream that
// is down writes a line in ten seconds and not one for each request.
package logs
