// Package envoy answers Envoy's global rate limit service, version 3 of its protocol, on weir's engine:
// what github.com/envoyproxy/ratelimit does with a Redis, in one process and without one.
//
// A [Service] is a rlsv3.RateLimitServiceServer, to be registered with a gRPC server. [Service.SetConfig] gives
// it the rules, at the start and whenever they change. The program weir-envoy is such a server, with the reference's
// files and environment variables.
//
// # Counting
//
// Unless a rule says otherwise it counts as the reference does: in fixed windows that begin at multiples of their
// length since 1970, and a refused request is counted, too. All rules with windows of one length share a table, because
// the limit is not a property of a counter: the count is compared with it. A counter is found by a 64-bit hash of the
// domain and the entries, so it stays what it is when the rules are loaded again.
//
// Memory is bounded: Options.MaxKeys counters for each length of window that the rules or the requests name. A counter
// holds up to 2^32 hits.
package envoy
