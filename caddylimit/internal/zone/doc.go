// Package zone keeps the counts of limits when Caddy's configuration changes. A zone is a limit with a name. Two
// handlers of one configuration that name the same zone share it. So do two consecutive configurations: the new one
// finds the zone by its name, and no key gets a fresh bucket.
//
// # Words
//
//	zone        a named limit of a module, and what it has counted
//	spec        what a configuration says of a zone
//	use         a zone as one configuration uses it
//	generation  a limiter that a zone has or had
//
// # How a zone changes
//
// Caddy provisions a configuration, then starts it, and then stops the previous one. A provisioned configuration may
// still be given up, because another module fails. So provisioning changes no zone: [App].Start does. [App].Stop
// reverts the change if the configuration was the latest, because then it never became active.
//
// If the limiter accepts the new numbers, they change in place ([engine.Limiter.SetPolicy]). It refuses another
// algorithm, for example, and a sliding log that becomes longer than its ring. The zone then gets a limiter of a new
// generation, and the tokens that keys have used still count: see package [live].
//
// [live]: https://pkg.go.dev/github.com/weir-go/weir/limits/live
package zone
