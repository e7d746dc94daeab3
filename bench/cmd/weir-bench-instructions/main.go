// Command weir-bench-instructions counts the instructions, loads and stores of a decision: `make bench-instructions`.
// Other programs on the machine do not change these counts. The command starts itself as a second process and steps
// through calls of every kind, one instruction at a time.
//
// A count includes all callees and accesses to the stack, minus the count of a call to an empty function. The command
// needs Linux on amd64.
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
