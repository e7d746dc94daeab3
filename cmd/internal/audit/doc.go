// Package audit finds out from outside what limit a server has. It sends requests in patterns, and package fit finds
// the limit that explains the decisions. It also asks in other ways, such as with another header, to find out which of
// them has a bucket of its own.
package audit
