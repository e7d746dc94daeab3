// Package envoy implements Envoy's global rate limit service, version 3 of its protocol, on weir's engine.
// github.com/envoyproxy/ratelimit, called the reference here, needs a Redis to implement this service. This package can
// do so in one process without a Redis.
//
// A [Service] is a rlsv3.RateLimitServiceServer. Register it with a gRPC server. [Service.SetConfig] gives the rules to
// the Service, at the start and whenever they change. The program weir-envoy is a gRPC server with this service, and
// uses the reference's files and environment variables.
//
// # Counting
//
// Unless a rule says otherwise, the service counts as the reference does: in fixed windows that start at multiples of
// their length since 1970. Refused requests are counted, too. All rules with windows of the same length share a table.
// This is possible because the table does not store limits: the service itself compares a count with the limit of the
// rule. A counter is found by a 64-bit hash of the domain and the entries, so it survives a reload of the rules.
//
// Memory is bounded: Options.MaxKeys counters for each length of window that the rules or the requests name. A counter
// holds up to 2^32 hits.
package envoy
