// Package redistest gives tests real Redis or Valkey servers, a real cluster of them, real
// sentinels, servers whose clock the test sets, and a network between that can be made slow, silent or
// broken.
//
// Every server is a process of its own on a free port of 127.0.0.1, without persistence, and is
// killed when the test ends. A service that the machine runs, on port 6379 or elsewhere, is never
// used. Without a redis-server or valkey-server on the PATH a test is skipped; where CI is set
// it fails.
//
// The package needs signals and builds to nothing but this comment on systems that have none.
package redistest
