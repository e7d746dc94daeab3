// Package config reads the configuration of Envoy's rate limit service. The configuration comes from YAML files in the
// format of github.com/envoyproxy/ratelimit, which is called the reference here. Or it comes from xDS, which carries
// the same tree of descriptors as messages.
//
// [Parse] and [FromXDS] make a [Document] of one file or one resource. [Compile] makes a [Config] of all documents, and
// [Config.Match] finds the rule of a descriptor. Parse and Compile collect all mistakes. Each mistake has its file,
// line and column, and the reason that the reference would give.
//
// # What is compatible
//
// A file that the reference accepts is accepted, and means the same. The reference accepts some texts that cannot be
// intended, such as a known key in a place where it has no effect. Such a file is accepted, and the [Document] has a
// warning.
//
// weir adds keys, such as algorithm, burst and period in a rate_limit, and all_or_nothing at the top. The reference
// refuses a file with these keys, because they are unknown to it. So the reference never applies only a part of such a
// file.
package config
