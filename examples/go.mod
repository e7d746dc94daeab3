module github.com/weir-go/weir/examples

go 1.25.0

require (
	github.com/go-chi/chi/v5 v5.5.0
	github.com/redis/go-redis/v9 v9.17.2
	github.com/weir-go/weir v0.1.0
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/dgryski/go-rendezvous v0.0.0-20200823014737-9f7001d12a5f // indirect
	golang.org/x/sys v0.47.0 // indirect
)
