module github.com/weir-go/weir/grpclimit

go 1.25.0

require (
	github.com/stretchr/testify v1.12.1
	github.com/weir-go/weir v0.1.0
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260226221140-a57be14db171
	google.golang.org/grpc v1.81.1
	google.golang.org/protobuf v1.36.11
)

require (
	github.com/anishathalye/porcupine v1.3.1 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
)

require (
	connectrpc.com/connect v1.20.0
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/weir-go/weir/limitertest v0.1.0
	golang.org/x/net v0.51.0 // indirect
	golang.org/x/sys v0.47.0 // indirect
	golang.org/x/text v0.34.0 // indirect
)
