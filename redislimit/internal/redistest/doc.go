// Package redistest gives tests real Redis or Valkey servers, a real cluster, real sentinels, and servers whose clock
// the test sets. It also has a proxy that stands for the network between client and server. A test can make this
// network slow, silent or broken.
//
// Every server is a separate process on a free port of 127.0.0.1, without persistence. It is killed when the test ends.
// Services that already run on the machine, on port 6379 or elsewhere, are never used. If there is no redis-server or
// valkey-server on the PATH, a test is skipped, or fails if CI is set.
//
// The package needs signals. On systems without them it is empty.
package redistest
