// Package audit finds out from outside what limit a server has. It sends requests in patterns, and package fit finds
// the limit that explains the decisions. It also sends variants, such as the request with another header, to find those
// with their own bucket.
package audit
