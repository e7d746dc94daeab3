module github.com/weir-go/weir/redislimit

go 1.25.0

replace github.com/weir-go/weir => ../

require (
	github.com/stretchr/testify v1.12.1
	github.com/weir-go/weir v0.0.0
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/sys v0.46.0 // indirect
)
