// Package keyhash hashes keys with a secret seed, as fast as possible. It uses the function of [hash/maphash]. Clients
// may be hostile, so a weaker function is not enough: see docs/decisions/0002-fingerprints-with-a-secret-seed.md.
//
// Hashing takes a quarter of the time of a decision. With maphash.String, half of this quarter would be spent in two
// functions before the runtime's hash. So with the usual compiler on amd64 and arm64, the runtime's hash is called
// directly, by a linkname. The runtime promises to keep the function for this use (go.dev/issue/67401). Elsewhere, and
// with the build tag purego, maphash is used.
package keyhash
