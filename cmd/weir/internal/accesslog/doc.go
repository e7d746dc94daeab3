// Package accesslog reads web server access logs: it opens a file or standard
// input, undoes gzip, cuts the stream into lines of bounded length and parses
// each line of the Common or Combined Log Format.
//
// A bad line is never fatal. It comes back as an error that says what is wrong
// with it, so that a caller can skip it, count it and show the reason; only a
// failing stream ends the reading.
package accesslog
