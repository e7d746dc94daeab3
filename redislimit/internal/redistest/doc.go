// Package redistest gives tests real Redis or Valkey servers, a cluster, sentinels, servers whose clock the test sets,
// and a proxy that makes the network slow, silent or broken.
//
// Every server is a process on a free port of 127.0.0.1, without persistence, until the test ends. Services that
// already run are never used. Without a redis-server or valkey-server on the PATH, a test is skipped, or fails if CI is
// set. On systems without signals, the package is empty.
package redistest
