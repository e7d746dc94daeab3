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
// A bad line gives a LineError with the reason, so that a caller can skip and count it. Only a failing stream ends the
// reading. A line with two possible readings is bad, because a guess could attribute requests to another client.
//
// The parsers are our own, because we found no maintained library that says why a line is bad. Parsing a line allocates
// nothing, except for new header names.
package accesslog
