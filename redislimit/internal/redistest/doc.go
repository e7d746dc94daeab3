// Package redistest gives tests real Redis or Valkey servers, a real cluster, real sentinels, and servers whose clock
// the test sets. It also has a network between client and server that can be made slow, silent or broken.
//
// Every server is a process of its own on a free port of 127.0.0.1, without persistence, and is
// killed when the test ends. A service that the machine runs, on port 6379 or elsewhere, is never
// used. Without a redis-server or valkey-server on the PATH a test is skipped; where CI is set
// it fails.
//
// The package needs signals. On systems without them it is empty.
package redistest
