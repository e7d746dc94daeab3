module github.com/weir-go/weir/redislimit

go 1.25.0

replace github.com/weir-go/weir => ../

require github.com/stretchr/testify v1.12.1

require go.yaml.in/yaml/v3 v3.0.5 // indirect
