// Command weir-bench-instructions counts the instructions, loads and stores of a decision: `make bench-instructions`.
// Other programs on the machine do not change these counts. The command steps through a second process, one instruction
// at a time, and needs Linux on amd64.
//
// A count includes callees and accesses to the stack, and excludes the call of an empty function.
package main

import (
	"fmt"
	"os"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "weir-bench-instructions:", err)
		os.Exit(1)
	}
}
