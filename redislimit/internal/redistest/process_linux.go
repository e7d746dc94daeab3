package redistest

import "syscall"

// attributes makes the kernel kill the server when the test's process dies without cleaning up, by a panic or its time
// limit.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
