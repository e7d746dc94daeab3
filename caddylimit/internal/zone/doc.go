// Package zone keeps the counts of limits when Caddy's configuration changes. A zone is a limit with a name. Two
// handlers of one configuration share a zone if they use the same name. Two consecutive configurations share a zone in
// the same way: the new configuration finds the zone by its name, so no key gets a fresh bucket.
//
// # Words
//
//	zone        a named limit of a module, and what it has counted
//	spec        the settings of a zone in a configuration
//	use         a zone as one configuration uses it
//	generation  a limiter that a zone has or had
//
// # How a zone changes
//
// Caddy provisions a configuration, then starts it, and then stops the previous one. A provisioned configuration may
// still be given up if another module fails. So provisioning does not change zones. [App].Start changes them. If
// another part of the configuration then fails to start, Caddy calls [App].Stop of this configuration while it is still
// the latest one. In this case, Stop reverts the change.
//
// If the limiter accepts the new numbers, they change in place ([engine.Limiter.SetPolicy]). The limiter does not
// accept every change. Examples are another algorithm, or a sliding log that becomes longer than its ring. In these
// cases the zone gets a limiter of a new generation, and the tokens that keys have used still count: see package
// [live].
//
// [live]: https://pkg.go.dev/github.com/weir-go/weir/limits/live
package zone
