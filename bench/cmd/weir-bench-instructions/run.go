//go:build linux && amd64

package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/arch/x86/x86asm"
	"golang.org/x/sys/unix"
)

// role is the environment variable that is only set in the stepped process.
const role = "WEIR_BENCH_STEPPED"

func init() { runtime.LockOSThread() } // only one thread may trace a thread; main runs on the first one

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

// The function step runs this program as a second process, which makes the calls, and steps through that process. For
// each call, it calls the function found with the call's count, minus the count of an empty call.
func step(s subject, found func(name string, c count)) error {
	command := exec.Command("/proc/self/exe")
	// These settings keep the scheduler and the collector from interrupting the thread.
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
	if err := unix.PtraceSetOptions(through.pid, unix.PTRACE_O_EXITKILL); err != nil { // kill it when we end
		return err
	}
	var empty count
	for _, name := range s.names() {
		var counts []count
		for range repeats {
			c, ok, err := through.measure(len(counts) < s.counted())
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			if ok {
				counts = append(counts, c)
			}
		}
		if len(counts) == 0 {
			return fmt.Errorf("%s: the scheduler interrupted every call: want a machine that is less busy", name)
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

type count struct{ instructions, loads, stores int }

func median(counts []count) count {
	slices.SortFunc(counts, func(a, b count) int { return a.instructions - b.instructions })
	return counts[len(counts)/2]
}

type stepper struct {
	pid     int
	decoded map[uint64]instruction
}

type instruction struct {
	x86asm.Inst
	pc uint64
}

const breakpoint = 0xcc

// measure lets the thread run to a breakpoint. If the flag counts is set, measure then counts instructions up to the
// next breakpoint. During the count, all other threads are stopped, because the scheduler would preempt the slow
// goroutine. If the flag counts is not set, or if the goroutine was already preempted, ok is false.
func (s *stepper) measure(counts bool) (c count, ok bool, err error) {
	if err := s.toBreakpoint(); err != nil {
		return c, false, err
	}
	if !counts {
		return c, false, s.toBreakpoint()
	}
	others, err := s.stopOthers()
	if err != nil {
		return c, false, err
	}
	preempted, err := s.isPreempted()
	if err == nil && !preempted {
		c, err = s.count()
	}
	for _, thread := range others {
		err = errors.Join(err, unix.PtraceDetach(thread))
	}
	if err == nil && preempted {
		err = s.toBreakpoint()
	}
	return c, !preempted, err
}

func (s *stepper) toBreakpoint() error {
	for signal := syscall.Signal(0); ; {
		if err := unix.PtraceCont(s.pid, int(signal)); err != nil {
			return err
		}
		var err error
		if signal, err = s.wait(); err != nil || signal == unix.SIGTRAP {
			return err
		}
	}
}

// isPreempted reports whether the goroutine will yield at the entry of the next function. Register R14 points to the
// goroutine's struct g, and its third word, stackguard0, contains the request to yield.
func (s *stepper) isPreempted() (bool, error) {
	var regs unix.PtraceRegs
	if err := unix.PtraceGetRegs(s.pid, &regs); err != nil {
		return false, err
	}
	var guard [8]byte
	_, err := unix.PtracePeekData(s.pid, uintptr(regs.R14+16), guard[:])
	const stackPreempt = 1<<64 - 1314
	return binary.LittleEndian.Uint64(guard[:]) == stackPreempt, err
}

func (s *stepper) count() (c count, err error) {
	for repeating := uint64(0); ; {
		inst, err := s.next()
		if err != nil {
			return c, err
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
		c.add(inst, inst.pc == repeating)
		repeating = inst.pc
	}
}

// stopOthers stops the other threads of the process, and returns them.
func (s *stepper) stopOthers() (threads []int, err error) {
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", s.pid))
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		thread, err := strconv.Atoi(e.Name())
		if err != nil {
			return nil, err
		}
		if thread == s.pid {
			continue
		}
		if err := unix.PtraceAttach(thread); err != nil {
			return nil, err
		}
		if _, err := unix.Wait4(thread, nil, unix.WALL, nil); err != nil {
			return nil, err
		}
		threads = append(threads, thread)
	}
	return threads, nil
}

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
	// The decoder does not know AES instructions. They count as instructions that use no memory.
	inst.Inst, _ = x86asm.Decode(code[:], 64)
	if code[0] == breakpoint {
		inst.Inst = x86asm.Inst{Op: x86asm.INT}
	}
	inst.pc = regs.Rip
	s.decoded[regs.Rip] = inst
	return inst, nil
}

// reads are the operations that read their first operand in memory and do not change it.
var reads = []x86asm.Op{x86asm.CMP, x86asm.TEST, x86asm.MUL, x86asm.IMUL, x86asm.DIV, x86asm.IDIV, x86asm.BT, x86asm.UCOMISD}

// writes are the operations that write their first operand in memory without reading it.
var writes = []x86asm.Op{x86asm.MOV, x86asm.MOVUPS, x86asm.MOVUPD, x86asm.MOVDQU, x86asm.MOVQ, x86asm.MOVD, x86asm.MOVAPS,
	x86asm.MOVSD_XMM, x86asm.MOVSS, x86asm.STOSB, x86asm.STOSQ, x86asm.MOVSB, x86asm.MOVSQ}

// add counts an instruction. The flag repeats says that the previous step was at the same instruction. A REP
// instruction takes a step for each repetition, but counts once.
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
