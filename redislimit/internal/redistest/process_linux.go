package redistest

import "syscall"

// attributes makes the kernel kill the server if the test's process ends without cleaning up, as after a panic or when
// its time limit is over.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
