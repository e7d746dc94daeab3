module github.com/weir-go/weir/redislimit

go 1.25.0

replace github.com/weir-go/weir => ../
