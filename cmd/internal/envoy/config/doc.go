// Package config reads the configuration of Envoy's rate limit service. It comes from YAML files in the format of
// github.com/envoyproxy/ratelimit, or as the same tree of descriptors from xDS.
//
// [Parse] and [FromXDS] make a [Document]. [Compile] makes a [Config] of all documents, and [Config.Match] finds the
// rule of a descriptor. Parse and Compile collect all mistakes, with file, line, column, and envoyproxy/ratelimit's
// reason.
//
// # What is compatible
//
// Every file that envoyproxy/ratelimit accepts is accepted here, with the same meaning. The [Document] has a warning
// for a text that cannot be intended, such as a known key where it has no effect.
//
// weir adds keys, such as algorithm, burst and period in a rate_limit, and all_or_nothing at the top.
// envoyproxy/ratelimit does not know these keys and refuses the complete file, so it never applies a part of it.
package config
