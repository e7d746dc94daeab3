module github.com/weir-go/weir/fuzz

go 1.25.0

require (
	github.com/anishathalye/porcupine v1.3.1
	github.com/cespare/xxhash/v2 v2.3.0
	github.com/dunglas/httpsfv v1.1.2
	github.com/stretchr/testify v1.12.1
	github.com/weir-go/weir v0.1.0
	github.com/weir-go/weir/limitertest v0.1.0
	pgregory.net/rapid v1.3.0
)

require (
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/sys v0.47.0 // indirect
)
