// Package accesslog reads the access logs of web servers, proxies and load balancers.
//
// A Log is one or more files, or standard input. These are the steps from a file to an entry:
//
//	open.go        names and patterns become files; each file must exist, be readable and be given once
//	decompress.go  gzip, bzip2, xz, zstd and UTF-16 are recognized by their first bytes, and decoded
//	lines.go       the stream is cut into lines of bounded length
//	detect.go      all formats are tried on the first lines; if none is found, the error says why
//	syslog.go      a syslog header is removed from a line
//	clf.go, ...    the format's parser makes an Entry of the line: one file for each format
//	astray.go      lines whose date is far from the dates around them are found
//	order.go       the entries of a file are sorted by their time, among the lines that are held in memory
//	sorter.go      entries are sorted on disk if the lines in memory are not enough
//	log.go         the entries of several files are merged by their time
//	spool.go       a stream is copied, so that it can be read again
//
// A bad line is never fatal. It gives a LineError that says what is wrong with the line, so a caller can skip the line,
// count it and show the reason. Only a failing stream ends the reading. A line that could be read in two ways is a bad
// line, because a guess could attribute the requests of one client to another.
//
// The parsers are our own because we found no maintained library that says why a line is bad. A line allocates nothing,
// except for header names that were not seen before.
package accesslog
