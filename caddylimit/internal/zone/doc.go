// Package zone keeps the counts of limits when Caddy's configuration changes. A zone is a limit with a name. Handlers
// of one configuration share the zone of a name. Consecutive configurations share it, too, so no key gets a fresh
// bucket.
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
// Caddy provisions a configuration, then starts it, and then stops the previous configuration. If another module fails,
// Caddy gives up a configuration that is only provisioned. So only [App].Start changes zones. If another part then
// fails to start, Caddy calls [App].Stop while this configuration is still the latest, and Stop reverts the change.
//
// The limiter of a zone takes over most new numbers in place ([engine.Limiter.SetPolicy]). It refuses some changes,
// such as another algorithm, or a sliding log that becomes longer than its ring. Then the zone gets a limiter of a new
// generation, and the tokens that keys have used still count: see package [live].
//
// [live]: https://pkg.go.dev/github.com/weir-go/weir/limits/live
package zone
