package redistest

import "syscall"

// attributes returns attributes with which the kernel kills the server if the test's process ends without cleaning up,
// such as after a panic or when its time limit is over.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
