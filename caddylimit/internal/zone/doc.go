// Package zone keeps what limits have counted over changes of Caddy's configuration. A zone is a limit with a name. Two
// handlers of one configuration that name the same zone share it, and so do two configurations that follow each other:
// the new one finds the zone by its name, and no key has a fresh bucket.
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
// Caddy provisions a configuration, then starts it, and then stops the one before. A configuration that is provisioned
// may still be given up, because another module fails. So provisioning changes no zone: [App].Start does, and
// [App].Stop takes the change back if the configuration was the latest, which then never came into force.
//
// Numbers that the limiter can take change in place ([engine.Limiter.SetPolicy]). Where it cannot take them, as with
// another algorithm or a sliding log that becomes longer than its ring, the zone gets a limiter of a new generation,
// and keys keep the tokens that they have used: see package [live].
//
// [live]: https://pkg.go.dev/github.com/weir-go/weir/limits/live
package zone
