// Package keyhash hashes keys with a secret seed: the function of [hash/maphash], as fast as
// it can be had. A limiter's user may be hostile, so nothing weaker will do: see
// docs/decisions/0002-fingerprints-with-a-secret-seed.md.
//
// Hashing is a quarter of a decision, and half of that was two functions between
// maphash.String and the runtime's hash. Where the compiler is the usual one and words have
// 64 bits the runtime's is called directly. That is a linkname to a function which the
// runtime says it keeps for this use (go.dev/issue/67401); elsewhere, and with the build tag
// purego, it is maphash.
package keyhash
