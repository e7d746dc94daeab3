// Package accesslog reads the access logs of web servers, proxies and load balancers.
//
// A Log is one or more files, or standard input. These are the steps from a file to an entry:
//
//	open.go        names and patterns become files; each is there, readable and given once
//	decompress.go  gzip, bzip2, xz, zstd and UTF-16 are undone, told by their first bytes
//	lines.go       the stream is cut into lines of bounded length
//	detect.go      the format is found by trying all on the first lines, or refused with the reason
//	syslog.go      a syslog header is taken off a line
//	clf.go, ...    the format's parser makes an Entry of the line: one file for each format
//	astray.go      lines whose date is far from those around them are found
//	order.go       the entries of a file are sorted by their time, as far as the lines that are held reach
//	sorter.go      where these are not enough they are sorted on disk
//	log.go         the entries of several files are merged by their time
//	spool.go       a stream is copied, so that it can be read again
//
// A bad line is never fatal. It is returned as a LineError that says what is wrong with it, so that a caller can skip
// it, count it and show the reason. Only a failing stream ends the reading. A line that could be read in two ways is a
// bad line, because a guess could attribute the requests of one client to another.
//
// The parsers are our own because no maintained library was found that says why a line is bad. A line allocates
// nothing, except for header names that were not seen before.
package accesslog
