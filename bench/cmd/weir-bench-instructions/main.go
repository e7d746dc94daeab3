// Command weir-bench-instructions counts the instructions, loads and stores of a decision, which do not depend on what
// else the machine does: `make bench-instructions`. It runs itself as another process and steps through some calls of
// every kind, one instruction at a time.
//
// It counts the instructions of a call and all its callees, minus the instructions of a call of an empty function.
// Loads and stores include those on the stack. It needs Linux on amd64.
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
