// Package envoy implements Envoy's global rate limit service, version 3, on weir's engine. Unlike
// github.com/envoyproxy/ratelimit, it can work in one process without a Redis.
//
// A [Service] is a rlsv3.RateLimitServiceServer for a gRPC server. [Service.SetConfig] gives it the rules, at the start
// and after each change. The program weir-envoy serves it, with envoyproxy/ratelimit's files and environment variables.
//
// # Counting
//
// Unless a rule says otherwise, the service counts as envoyproxy/ratelimit does. Refused requests count, too, and fixed
// windows start at multiples of their length since 1970. Rules with windows of the same length share a table, because
// the service itself compares a count with the limit. A counter is found by a 64-bit hash of the domain and the
// entries, so counters survive a reload.
//
// Memory is bounded. For each length of window that rules or requests name, there are at most Options.MaxKeys counters.
// A counter holds up to 2^32 hits.
package envoy
