// Command weir-bench-instructions counts the instructions, loads and stores of a decision: `make bench-instructions`.
// These counts do not depend on other programs on the machine. The command starts itself as a second process. In that
// process, it steps through some calls of every kind, one instruction at a time.
//
// For each call, it counts the instructions of the function and all its callees, and subtracts the instructions of a
// call to an empty function. Loads and stores include those on the stack. The command needs Linux on amd64.
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
