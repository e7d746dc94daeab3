package engine_test

import (
	"fmt"

	"github.com/weir-go/weir/engine"
)

// The limit is for a whole service, so requests on all processors use it.
func ExampleNewSpread() {
	service, err := engine.NewSpread(engine.TokenBucket(engine.PerSecond(1_000_000), 50_000))
	if err != nil {
		panic(err)
	}
	defer service.Close()

	if !service.Allow() {
		fmt.Println("the service is busy")
		return
	}
	fmt.Println("served")
	// Output: served
}
