// Package envoy implements Envoy's global rate limit service, version 3 of its protocol, on weir's engine.
// github.com/envoyproxy/ratelimit, called the reference here, does this with a Redis; this package does it in one
// process without one.
//
// A [Service] is a rlsv3.RateLimitServiceServer, to be registered with a gRPC server. [Service.SetConfig] gives
// it the rules, at the start and whenever they change. The program weir-envoy is such a server, with the reference's
// files and environment variables.
//
// # Counting
//
// Unless a rule says otherwise, it counts as the reference does: in fixed windows that start at multiples of their
// length since 1970, and including refused requests. All rules with windows of one length share a table, because a
// counter has no limit of its own: its count is compared with the rule's limit. A counter is found by a 64-bit hash of
// the domain and the entries, so it survives a reload of the rules.
//
// Memory is bounded: Options.MaxKeys counters for each length of window that the rules or the requests name. A counter
// holds up to 2^32 hits.
package envoy
