package redistest

import "syscall"

// attributes makes the kernel kill the server if the test's process ends without cleaning up, such as after a panic.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
