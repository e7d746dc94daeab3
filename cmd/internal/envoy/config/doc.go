// Package config reads the configuration of Envoy's rate limit service: from YAML files as
// github.com/envoyproxy/ratelimit has them, or from xDS, which carries the same tree as messages.
//
// [Parse] and [FromXDS] make a [Document] of one file or one resource. [Compile] makes a [Config] of
// all documents, and [Config.Match] finds the rule of a descriptor. Each step gathers all mistakes,
// with file, line, column and the reference's reason.
//
// # What is compatible
//
// A file that the reference takes is taken, and means the same. Where the reference takes something
// that cannot have been meant, such as a known key in a place where it is not looked at, the file is
// taken and the [Document] has a warning.
//
// Keys of weir's own are refused by the reference as unknown, so that a file which needs them is never
// half-read by it: in a rate_limit algorithm, burst and period, at the top all_or_nothing.
package config
