// Command weir-bench-instructions counts the instructions, loads and stores of a decision: `make bench-instructions`.
// These counts do not depend on other programs of the machine. The command runs itself as another process and steps
// through some calls of every kind, one instruction at a time.
//
// It counts the instructions of a call and all its callees, minus the instructions of a call of an empty function.
// Loads and stores include those on the stack. The command needs Linux on amd64.
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
