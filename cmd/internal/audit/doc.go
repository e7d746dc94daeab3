// Package audit finds out from outside what limit a server has. It sends requests in patterns, and package fit finds
// the limit that explains the decisions. It also sends variants of the request, for example with another header field,
// and finds out which of them have their own bucket.
package audit
