//go:build linux && amd64

package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/arch/x86/x86asm"
	"golang.org/x/sys/unix"
)

// role is the variable that makes this program the one that is stepped through.
const role = "WEIR_BENCH_STEPPED"

func init() { runtime.LockOSThread() } // a thread is traced by one thread, and the first one is that of main

func run() error {
	if os.Getenv(role) != "" {
		return child()
	}
	fmt.Printf("%-22s %10s %14s %8s %8s\n", "call", "keys", "instructions", "loads", "stores")
	return step(all, func(name string, c count) {
		what, keys, _ := strings.Cut(name, "\t")
		fmt.Printf("%-22s %10s %14d %8d %8d\n", what, keys, c.instructions, c.loads, c.stores)
	})
}

// step runs this program as another process, which makes the calls, and steps through it. It calls found with what each
// call executes, minus what an empty one executes.
func step(s subject, found func(name string, c count)) error {
	command := exec.Command("/proc/self/exe")
	// Neither the scheduler nor the collector interrupts the thread.
	command.Env = append(os.Environ(), role+"="+string(s), "GODEBUG=asyncpreemptoff=1")
	command.Stderr = os.Stderr
	command.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
	if err := command.Start(); err != nil {
		return err
	}
	defer func() { _ = command.Process.Kill(); _ = command.Wait() }()
	through := stepper{pid: command.Process.Pid, decoded: map[uint64]instruction{}}
	if _, err := through.wait(); err != nil {
		return err
	}
	if err := unix.PtraceSetOptions(through.pid, unix.PTRACE_O_EXITKILL); err != nil { // it ends with this process
		return err
	}
	var empty count
	for _, name := range s.names() {
		var counts []count
		for range s.repeats() {
			c, err := through.measure()
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			counts = append(counts, c)
		}
		c := median(counts)
		if strings.HasPrefix(name, "empty") {
			empty = c
			continue
		}
		found(name, count{c.instructions - empty.instructions, c.loads - empty.loads, c.stores - empty.stores})
	}
	return nil
}

// A count is what was executed.
type count struct{ instructions, loads, stores int }

// median returns the count with the median number of instructions.
func median(counts []count) count {
	slices.SortFunc(counts, func(a, b count) int { return a.instructions - b.instructions })
	return counts[len(counts)/2]
}

// A stepper steps through a thread.
type stepper struct {
	pid     int
	decoded map[uint64]instruction
}

// An instruction is one of the program's, which is this program.
type instruction struct {
	x86asm.Inst
	pc, entry uint64 // of it and of its function
	more      bool   // its function is the one that another calls at its beginning when it is preempted
}

const breakpoint = 0xcc

// measure lets the thread run to a breakpoint, and counts from there to the next. Stepping is slow, so the scheduler
// may consider the goroutine too long-running and preempt it at the entry of a function. What the thread then does
// until it enters the function again is not counted.
func (s *stepper) measure() (c count, err error) {
	for signal := syscall.Signal(0); ; {
		if err := unix.PtraceCont(s.pid, int(signal)); err != nil {
			return c, err
		}
		if signal, err = s.wait(); err != nil {
			return c, err
		}
		if signal == unix.SIGTRAP {
			break
		}
	}
	var entered uint64 // the function that was entered last
	var before count   // until then
	preempted := false
	for repeating := uint64(0); ; {
		inst, err := s.next()
		if err != nil {
			return c, err
		}
		switch {
		case inst.more && !preempted:
			c, preempted = before, true
		case preempted:
			preempted = inst.pc != entered
		case inst.pc == inst.entry:
			entered, before = inst.pc, c
		}
		if err := unix.PtraceSingleStep(s.pid); err != nil {
			return c, err
		}
		if _, err := s.wait(); err != nil {
			return c, err
		}
		if inst.Op == x86asm.INT {
			return c, nil
		}
		if !preempted {
			c.add(inst, inst.pc == repeating)
		}
		repeating = inst.pc
	}
}

// wait waits until the thread stops, and returns the signal that stopped it.
func (s *stepper) wait() (syscall.Signal, error) {
	var status unix.WaitStatus
	if _, err := unix.Wait4(s.pid, &status, unix.WALL, nil); err != nil {
		return 0, err
	}
	if !status.Stopped() {
		return 0, fmt.Errorf("the stepped process ended early: status %#x", uint32(status))
	}
	return status.StopSignal(), nil
}

// next returns the instruction that comes next.
func (s *stepper) next() (inst instruction, err error) {
	var regs unix.PtraceRegs
	if err := unix.PtraceGetRegs(s.pid, &regs); err != nil {
		return inst, err
	}
	inst, ok := s.decoded[regs.Rip]
	if ok {
		return inst, nil
	}
	var code [16]byte
	if _, err := unix.PtracePeekText(s.pid, uintptr(regs.Rip), code[:]); err != nil {
		return inst, err
	}
	// The decoder knows no AES instructions, which then count as one each that touches no memory.
	inst.Inst, _ = x86asm.Decode(code[:], 64)
	if code[0] == breakpoint {
		inst.Inst = x86asm.Inst{Op: x86asm.INT}
	}
	if f := runtime.FuncForPC(uintptr(regs.Rip)); f != nil {
		inst.entry, inst.more = uint64(f.Entry()), strings.HasPrefix(f.Name(), "runtime.morestack")
	}
	inst.pc = regs.Rip
	s.decoded[regs.Rip] = inst
	return inst, nil
}

// reads are the operations that read the memory that is their first operand, and do not write it.
var reads = []x86asm.Op{x86asm.CMP, x86asm.TEST, x86asm.MUL, x86asm.IMUL, x86asm.DIV, x86asm.IDIV, x86asm.BT, x86asm.UCOMISD}

// writes are the operations that write the memory that is their first operand, and do not read it.
var writes = []x86asm.Op{x86asm.MOV, x86asm.MOVUPS, x86asm.MOVUPD, x86asm.MOVDQU, x86asm.MOVQ, x86asm.MOVD, x86asm.MOVAPS,
	x86asm.MOVSD_XMM, x86asm.MOVSS, x86asm.STOSB, x86asm.STOSQ, x86asm.MOVSB, x86asm.MOVSQ}

// add counts an instruction. repeats says that it is the one before again: a REP instruction stops after each of its
// steps, and is one instruction.
func (c *count) add(inst instruction, repeats bool) {
	if !repeats {
		c.instructions++
	}
	switch inst.Op {
	case x86asm.LEA, x86asm.NOP, x86asm.PREFETCHT0, x86asm.PREFETCHNTA:
		return
	case x86asm.PUSH, x86asm.CALL:
		c.stores++
	case x86asm.POP, x86asm.RET:
		c.loads++
	}
	for i, arg := range inst.Args {
		if _, ok := arg.(x86asm.Mem); !ok {
			continue
		}
		only := i == 0 && slices.Contains(writes, inst.Op)
		if !only {
			c.loads++
		}
		if only || i == 0 && !slices.Contains(reads, inst.Op) && inst.Op != x86asm.CALL && inst.Op != x86asm.PUSH &&
			inst.Op != x86asm.JMP {
			c.stores++
		}
	}
}
