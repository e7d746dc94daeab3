//go:build explore

package shard

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/atomicbucket"
	"github.com/weir-go/weir/internal/word"
)

// operations returns the operations of a call on the words of a table, in order. A store is marked by =, a
// compare-and-swap by ?, and an addition by +. Words have short names:
//
//	s3, k3, r3.1    state and key of slot 3, and entry 1 of its ring
//	w, swept        the watermark, and the time of the last sweep
//	p, moving       the plan, and the count of calls that may move the watermark
//	h0, l, m        the first word of probe bounds, the word lowering, the marks of pages
//	leading, ends, promised, largest    words for refunds, and for quotas
//	n, c, setting, a0.1    in a shared table: planned, change, setting, and word 1 of area 0
func operations(tb *Table, call func()) string {
	names := map[*word.Word]string{
		&tb.watermark: "w", &tb.swept: "swept", &tb.pace: "pace", &tb.advancing: "moving",
		&tb.plan.Word: "p", &tb.lowering: "l", &tb.leading: "leading", &tb.largest: "largest",
		&tb.neighbourhoods[0].ends: "ends", &tb.neighbourhoods[0].promised: "promised",
	}
	for _, w := range tb.PageWords() {
		names[w] = "m"
	}
	for i := range tb.words {
		names[&tb.words[i]] = fmt.Sprintf("h%d", i)
	}
	if tb.IsShared() {
		names[&tb.planned], names[&tb.change], names[&tb.setting] = "n", "c", "setting"
		for i := range tb.areas {
			for j := range tb.areas[i] {
				names[&tb.areas[i][j]] = fmt.Sprintf("a%d.%d", i, j)
			}
		}
	}
	words := tb.Words()
	slots := tb.shards[0].slots
	for i := range slots {
		names[words[2*i]], names[words[2*i+1]] = fmt.Sprintf("s%d", i), fmt.Sprintf("k%d", i)
		ring := tb.ring(&slots[i])
		for j := range ring {
			names[&ring[j]] = fmt.Sprintf("r%d.%d", i, j)
		}
	}
	var done []string
	word.Before = func(a word.Access) {
		if a.Word == &tb.planned && !tb.IsShared() {
			return // a table of one process reads this word too, but it means nothing there: R21
		}
		done = append(done, names[a.Word]+map[word.Op]string{word.Load: "", word.Store: "=", word.CompareAndSwap: "?", word.Add: "+"}[a.Op])
	}
	defer func() { word.Before = nil }()
	call()
	return strings.Join(done, " ")
}

// TestTheOperationsOfEachCall: each call reads and writes exactly these words, in this order. The rules of doc.go give
// the reasons. For example, a call reads the state before its key (R1) and before the plan (R9), and reads a refusing
// state twice (R2). A search ends at the record, at the probe bound or at a slot that was never used.
func TestTheOperationsOfEachCall(t *testing.T) {
	const now = start + 20*second
	var status atomicbucket.Status
	algorithms := algorithmsOfFive(t)
	// Each key has taken one token. The keys of the first slots took theirs long ago, so their records are idle by now.
	for _, c := range []struct {
		name              string
		kind              string
		idle, live, freed int // slots with an idle record, then with a live one; how many of these were freed
		overflow          Overflow
		call              func(tb *Table)
		want              string
	}{
		{"take, the first", "bucket", 0, 0, 0, Refuse, func(tb *Table) { take(tb, 100, now, 1) }, "s0 k0 w p p s0 p k0 w p m m? s0? k0= s0= k1 s1 p w k0 s0?"},
		{"take, found at once", "bucket", 0, 3, 0, Refuse, func(tb *Table) { take(tb, 1, now, 1) }, "s0 k0 p w s0?"},
		{"take, refused", "bucket", 0, 3, 0, Refuse, func(tb *Table) { take(tb, 1, now, 5) }, "s0 k0 p w s0"},
		{"take, too much", "bucket", 0, 3, 0, Refuse, func(tb *Table) { take(tb, 1, now, 6) }, "s0 k0 p w p p"},
		{"take, late", "bucket", 0, 3, 0, Refuse, func(tb *Table) { take(tb, 1, start-1, 1) }, "s0 k0 p w w p s0 p w s1 p w s2 p w s3 p k0 s0 p k0 s0 k0 p w s0"},
		{"take, far ahead", "bucket", 0, 3, 0, Refuse, func(tb *Table) { take(tb, 1, start+int64(tb.Plan().skew)+1, 1) }, "p s0 k0 p w w p moving+ pace swept w? moving+ w p s0 p w s1 p w s2 p w s3 p k0 s0 p k0 s0 k0 p w k0 s0?"},
		{"take, behind a free slot", "bucket", 0, 3, 1, Refuse, func(tb *Table) { take(tb, 2, now, 1) }, "s0 k0 s1 k1 p w s1?"},
		{"take, found in the second line", "bucket", 0, 7, 0, Refuse, func(tb *Table) { take(tb, 7, now, 1) }, "s0 k0 s1 k1 s2 k2 s3 k3 s4 k4 s5 k5 s6 k6 p w s6?"},
		{"take, found in the third line", "bucket", 0, 10, 0, Refuse, func(tb *Table) { take(tb, 10, now, 1) }, "s0 k0 s1 k1 s2 k2 s3 k3 s4 k4 s5 k5 s6 k6 s7 k7 w p p s0 p w s1 p w s2 p w s3 p w s0 p k0 s1 p k1 s2 p k2 s3 p k3 s4 p k4 s5 p k5 s6 p k6 s7 p k7 s8 p k8 s9 p k9 s9 p k9 s0 k0 s1 k1 h0 s2 k2 h0 s3 k3 h0 s4 k4 h0 s5 k5 h0 s6 k6 h0 s7 k7 h0 s8 k8 h0 s9 k9 p w k9 s9?"},
		{"take, new, behind live ones", "bucket", 0, 3, 0, Refuse, func(tb *Table) { take(tb, 100, now, 1) }, "s0 k0 s1 k1 s2 k2 s3 k3 w p p s0 p w s1 p w s2 p w s3 p k0 k1 h0 k2 h0 k3 w p m s3? k3= s3= l h0 k0 k1 h0 k2 h0 p w k3 s3?"},
		{"take, new, a freed slot", "bucket", 0, 4, 1, Refuse, func(tb *Table) { take(tb, 100, now, 1) }, "s0 k0 s1 k1 s2 k2 s3 k3 s4 k4 w p p s0 p k0 k1 h0 k2 h0 k3 h0 w p s0? k0= s0= k1 h0 k2 k3 h0 p w k0 s0?"},
		{"take, new, a freed slot before unused ones", "bucket", 0, 2, 1, Refuse, func(tb *Table) { take(tb, 100, now, 1) }, "s0 k0 s1 k1 s2 k2 w p p s0 p k0 k1 h0 w p s0? k0= s0= k1 h0 p w k0 s0?"},
		{"take, new, an idle slot", "bucket", 2, 2, 0, Refuse, func(tb *Table) { take(tb, 100, now, 1) }, "s0 k0 s1 k1 s2 k2 s3 k3 s4 k4 w p p s0 p w s1 p w s2 p w s3 p w s0 p k0 s0 p k0 w s1 p k1 w s2 p k2 s3 p k3 s4 p k4 w p m s4? k4= s4= l h0 h0? k0 k1 h0 k2 k3 h0 k5 s5 p w k4 s4?"},
		{"take, new, every slot used", "bucket", 0, 12, 1, Refuse, func(tb *Table) { take(tb, 100, now, 1) }, "s0 k0 s1 k1 s2 k2 s3 k3 s4 k4 s5 k5 s6 k6 s7 k7 w p p s0 p k0 k1 h0 k2 h0 k3 h0 k4 h0 k5 h0 k6 h0 k7 h0 k8 h0 k9 h0 k10 h0 k11 w p s0? k0= s0= k1 h0 k2 k3 h0 k4 k5 h0 k6 k7 h0 k8 k9 h0 k10 k11 p w k0 s0?"},
		{"take, new, every slot idle", "bucket", 12, 0, 0, Refuse, func(tb *Table) { take(tb, 100, now, 1) }, "s0 k0 s1 k1 s2 k2 s3 k3 s4 k4 s5 k5 s6 k6 s7 k7 w p p s0 p w s1 p w s2 p w s3 p w s0 p k0 s0 p k0 w s1 p k1 w s2 p k2 w s3 p k3 w s4 p k4 w s5 p k5 w s6 p k6 w s7 p k7 w h0 k8 h0 k9 h0 k10 h0 k11 w p w moving+ pace swept w? moving+ w s0? p w k0= s0= k1 h0 k2 k3 h0 k4 k5 h0 k6 k7 h0 k8 k9 h0 k10 k11 p w k0 s0?"},
		{"take, new, every slot idle at the watermark", "bucket", 12, 0, 0, Refuse, func(tb *Table) {
			tb.watermark.Poke(uint64(now))
			take(tb, 100, now, 1)
		}, "s0 k0 s1 k1 s2 k2 s3 k3 s4 k4 s5 k5 s6 k6 s7 k7 w p s0 p w s1 p w s2 p w s3 p w k0 k1 h0 k2 h0 k3 h0 k4 h0 k5 h0 k6 h0 k7 h0 k8 h0 k9 h0 k10 h0 k11 w p s0? p w k0= s0= k1 h0 k2 k3 h0 k4 k5 h0 k6 k7 h0 k8 k9 h0 k10 k11 p w k0 s0?"},
		{"take, new, only the second line idle at the watermark", "bucket", 0, 12, 0, Refuse, func(tb *Table) {
			for i := uint64(4); i < 8; i++ {
				sl := tb.Find(1).slot(i)
				(*word.Word)(unsafe.Pointer(&sl.state)).Poke(uint64(atomicbucket.NewState(atomicbucket.Live, 1, uint64(start)+i)))
			}
			tb.watermark.Poke(uint64(now))
			take(tb, 100, now, 1)
		}, "s0 k0 s1 k1 s2 k2 s3 k3 s4 k4 s5 k5 s6 k6 s7 k7 w p s0 p w s1 p w s2 p w s3 p w s0 p k0 s1 p k1 s2 p k2 s3 p k3 s4 p k4 s4 p k4 w s5 p k5 w s6 p k6 w s7 p k7 w h0 k8 h0 k9 h0 k10 h0 k11 w p s4? p w k4= s4= l h0 k0 k1 h0 k2 k3 h0 k5 h0 k6 k7 h0 k8 k9 h0 k10 k11 p w k4 s4?"},
		{"take, new, a slot is claimed and never written", "bucket", 0, 3, 0, Refuse, func(tb *Table) {
			tb.Find(1).slot(3).state.Claim(0, 0)
			take(tb, 100, now, 1)
		}, "s3? s0 k0 s1 k1 s2 k2 s3 k3 s4 k4 w p p s0 p w s1 p w s2 p w s3 p s0 p k0 s1 p k1 s2 p k2 s3 p s3 p k3 s4 p k4 w p m s4? k4= s4= l h0 h0? k0 k1 h0 k2 k3 s3 h0 k5 s5 p w k4 s4?"},
		{"take, a tentative record of the key", "bucket", 0, 3, 0, Refuse, func(tb *Table) {
			sl := tb.Find(1).slot(3)
			claimed, _ := sl.state.Claim(0, 0)
			sl.key.Store(100)
			sl.state.Publish(claimed)
			take(tb, 100, now, 1)
		}, "s3? k3= s3= s0 k0 s1 k1 s2 k2 s3 k3 p s4 k4 w p p s0 p w s1 p w s2 p w s3 p s0 p k0 s1 p k1 s2 p k2 s3 p s3 p k3 l h0 k0 k1 h0 k2 h0 p w k3 s3?"},
		{"take, new, a higher tentative record of the key", "bucket", 0, 3, 1, Refuse, func(tb *Table) {
			sl := tb.Find(1).slot(3)
			claimed, _ := sl.state.Claim(0, 0)
			sl.key.Store(100)
			sl.state.Publish(claimed)
			tb.publish(tb.Find(100), tb.Find(1).slot(0), atomicbucket.NewState(atomicbucket.Claimed, 2, 0), &request{now: now, clock: now, n: 1})
		}, "s3? k3= s3= k0= s0= k1 h0 k2 k3 s3 s3? h0 p w k0 s0?"},
		{"take, new, a lower tentative record of the key", "bucket", 0, 3, 1, Refuse, func(tb *Table) {
			sl := tb.Find(1).slot(0)
			claimed, _ := sl.state.Claim(sl.state.Load(), 0)
			sl.key.Store(100)
			sl.state.Publish(claimed)
			tb.publish(tb.Find(100), tb.Find(1).slot(3), atomicbucket.NewState(atomicbucket.Claimed, 1, 0), &request{now: now, clock: now, n: 1})
		}, "s0 s0? k0= s0= k3= s3= l h0 k0 s0 s3?"},
		{"sweep, a claimed slot", "bucket", 0, 1, 0, Refuse, func(tb *Table) {
			tb.Find(1).slot(1).state.Claim(0, 0)
			tb.Sweep(now, nil)
		}, "s1? w p w moving+ pace swept w? moving+ w l l? m s0 p w k0 s1 s2 s3 s4 s5 s6 s7 s8 s9 s10 s11 l h0 l= swept swept?"},
		{"sweep, a tentative record", "bucket", 0, 1, 0, Refuse, func(tb *Table) {
			sl := tb.Find(1).slot(1)
			claimed, _ := sl.state.Claim(0, 0)
			sl.key.Store(100)
			sl.state.Publish(claimed)
			tb.Sweep(now, nil)
		}, "s1? k1= s1= w p w moving+ pace swept w? moving+ w l l? m s0 p w k0 s1 s1? s2 s3 s4 s5 s6 s7 s8 s9 s10 s11 l h0 l= swept swept?"},
		{"adopt, a tentative record", "bucket", 0, 1, 0, Refuse, func(tb *Table) {
			sl := tb.Find(1).slot(1)
			claimed, _ := sl.state.Claim(0, 0)
			sl.key.Store(100)
			sl.state.Publish(claimed)
			tb.Adopt(anotherPlan, clockAt(now))
		}, "s1? k1= s1= p w p w moving+ pace swept w? moving+ w pace= moving p= m s0 p p k0 w largest leading promised s0? s1 s1? s2 s3 s4 s5 s6 s7 s8 s9 s10 s11 pace="},
		{"take, new, an idle slot in the third line", "bucket", 0, 12, 0, Refuse, func(tb *Table) {
			tb.Reset(tb.Find(11))
			take(tb, 100, now, 1)
		}, "s0 k0 s1 k1 h0 s2 k2 h0 s3 k3 h0 s4 k4 h0 s5 k5 h0 s6 k6 h0 s7 k7 h0 s8 k8 h0 s9 k9 h0 s10 k10 p ends+ s10? ends+ s0 k0 s1 k1 s2 k2 s3 k3 s4 k4 s5 k5 s6 k6 s7 k7 w p p s0 p w s1 p w s2 p w s3 p w s0 p k0 s1 p k1 s2 p k2 s3 p k3 s4 p k4 s5 p k5 s6 p k6 s7 p k7 s8 p k8 s9 p k9 s10 p s10 p k10 h0 k11 w p s10? k10= s10= l h0 k0 k1 h0 k2 k3 h0 k4 k5 h0 k6 k7 h0 k8 k9 h0 k11 p w k10 s10?"},
		{"take, no room", "bucket", 0, 12, 0, Refuse, func(tb *Table) { take(tb, 100, now, 1) }, "s0 k0 s1 k1 s2 k2 s3 k3 s4 k4 s5 k5 s6 k6 s7 k7 w p p s0 p w s1 p w s2 p w s3 p w s0 p k0 s1 p k1 s2 p k2 s3 p k3 s4 p k4 s5 p k5 s6 p k6 s7 p k7 s8 p k8 s9 p k9 s10 p k10 s11 p k11 w p s0"},
		{"take, not recorded", "bucket", 0, 12, 0, Admit, func(tb *Table) { take(tb, 100, now, 1) }, "s0 k0 s1 k1 s2 k2 s3 k3 s4 k4 s5 k5 s6 k6 s7 k7 w p p s0 p w s1 p w s2 p w s3 p w s0 p k0 s1 p k1 s2 p k2 s3 p k3 s4 p k4 s5 p k5 s6 p k6 s7 p k7 s8 p k8 s9 p k9 s10 p k10 s11 p k11 w p"},
		{"take, evicts", "bucket", 0, 12, 0, Evict, func(tb *Table) { take(tb, 100, now, 1) }, "s0 k0 s1 k1 s2 k2 s3 k3 s4 k4 s5 k5 s6 k6 s7 k7 w p p s0 p w s1 p w s2 p w s3 p w s0 p k0 s1 p k1 s2 p k2 s3 p k3 s4 p k4 s5 p k5 s6 p k6 s7 p k7 s8 p k8 s9 p k9 s10 p k10 s11 p k11 w p k0 ends+ s0? ends+ k0= s0= k1 h0 k2 k3 h0 k4 k5 h0 k6 k7 h0 k8 k9 h0 k10 k11 p w k0 s0?"},
		{"take, meets another plan", "bucket", 0, 2, 0, Refuse, func(tb *Table) {
			anotherPlan.takeOver(tb.plan.Load(), clockAt(now))
			tb.plan.Store(anotherPlan)
			take(tb, 2, now, 1)
		}, "p p= s0 k0 s1 k1 p w p p s0 p s0 p s0 p p k0 w largest leading promised s0? s0 k0 s1 k1 p p k1 w largest leading promised s1? s1 k1 p w s1"},
		{"take, new, meets another plan", "bucket", 0, 2, 0, Refuse, func(tb *Table) {
			anotherPlan.takeOver(tb.plan.Load(), clockAt(now))
			tb.plan.Store(anotherPlan)
			take(tb, 100, now, 1)
		}, "p p= s0 k0 s1 k1 s2 k2 w p p s0 p s0 p s0 p p k0 w largest leading promised s0? s0 k0 s1 k1 h0 p w p p s0 p w s1 p s0 p k0 s1 p s1 p p k1 w largest leading promised s1? s0 k0 s1 k1 h0 p w p p s0 p w s1 p w s2 p k0 k1 h0 w p m s2? k2= s2= l h0 h0? k0 k1 h0 k3 s3 p w k2 s2?"},
		{"take, of a window", "fixed", 0, 3, 0, Refuse, func(tb *Table) { take(tb, 2, now, 1) }, "s0 k0 s1 k1 p w k1 s1?"},
		{"take, refused by a window", "fixed", 0, 3, 0, Refuse, func(tb *Table) { take(tb, 2, now, 5) }, "s0 k0 s1 k1 p w s1"},
		{"take, the first of a window", "fixed", 0, 3, 0, Refuse, func(tb *Table) { take(tb, 100, now, 1) }, "s0 k0 s1 k1 h0 s2 k2 h0 s3 p w p p s0 p k0 w s1 p k1 w s2 p k2 w s3 p k3 w p m s3? k3= s3= l h0 k0 k1 h0 k2 h0 p w k3 s3?"},
		{"take, of a log", "log", 0, 3, 0, Refuse, func(tb *Table) { take(tb, 2, now, 1) }, "s0 k0 s1 k1 p w r1.2 r1.1 s1 r1.1? k1 s1?"},
		{"take, refused by a log", "log", 0, 3, 0, Refuse, func(tb *Table) { take(tb, 2, now, 5) }, "s0 k0 s1 k1 p w s1"},
		{"take, evicts a log", "log", 0, 12, 0, Evict, func(tb *Table) { take(tb, 100, now, 1) }, "s0 k0 s1 k1 h0 s2 k2 h0 s3 k3 h0 s4 k4 h0 s5 k5 h0 s6 k6 h0 s7 k7 h0 s8 k8 h0 s9 k9 h0 s10 k10 h0 s11 k11 p w p p s0 p k0 w s1 p k1 w s2 p k2 w s3 p k3 w s4 p k4 w s5 p k5 w s6 p k6 w s7 p k7 w s8 p k8 w s9 p k9 w s10 p k10 w s11 p k11 w w p s0 p k0 r0.4 r0.0 s1 p k1 r1.4 r1.0 s2 p k2 r2.4 r2.0 s3 p k3 r3.4 r3.0 s4 p k4 r4.4 r4.0 s5 p k5 r5.4 r5.0 s6 p k6 r6.4 r6.0 s7 p k7 r7.4 r7.0 s8 p k8 r8.4 r8.0 s9 p k9 r9.4 r9.0 s10 p k10 r10.4 r10.0 s11 p k11 r11.4 r11.0 k0 ends+ s0? ends+ r0.0= r0.1= r0.2= r0.3= r0.4= k0= s0= k1 h0 k2 k3 h0 k4 k5 h0 k6 k7 h0 k8 k9 h0 k10 k11 p w k0 s0?"},
		{"decide", "bucket", 0, 3, 0, Refuse, func(tb *Table) { tb.Decide(tb.Find(2), now, 1, 0, &status) }, "s0 k0 s1 k1 p w s1?"},
		{"decide, of a log", "log", 0, 3, 0, Refuse, func(tb *Table) { tb.Decide(tb.Find(2), now, 1, 0, &status) }, "s0 k0 s1 k1 p w r1.2 r1.1 s1 r1.1? r1.0 r1.1 r1.1 k1 s1?"},
		{"peek", "bucket", 0, 3, 0, Refuse, func(tb *Table) { tb.Peek(tb.Find(2), now, 1, 0) }, "w p s0 k0 s1 k1 p w s1"},
		{"peek, no record", "bucket", 0, 3, 0, Refuse, func(tb *Table) { tb.Peek(tb.Find(100), now, 1, 0) }, "w p s0 k0 s1 k1 h0 s2 k2 h0 s3 p w"},
		{"peek, no record, every slot used", "bucket", 0, 12, 0, Refuse, func(tb *Table) { tb.Peek(tb.Find(100), now, 1, 0) }, "w p s0 k0 s1 k1 h0 s2 k2 h0 s3 k3 h0 s4 k4 h0 s5 k5 h0 s6 k6 h0 s7 k7 h0 s8 k8 h0 s9 k9 h0 s10 k10 h0 s11 k11 p w"},
		{"peek, meets another plan", "bucket", 0, 3, 0, Refuse, func(tb *Table) {
			anotherPlan.takeOver(tb.plan.Load(), clockAt(now))
			tb.plan.Store(anotherPlan)
			tb.Peek(tb.Find(2), now, 1, 0)
		}, "p p= w p s0 k0 s1 k1 p p k1 w largest leading promised s1? s1 k1 p w s1"},
		{"refund", "bucket", 0, 3, 0, Refuse, func(tb *Table) { tb.Refund(tb.Find(2), now, 1, 0, Receipt{}) }, "w p s0 k0 s1 k1 p w leading promised s1?"},
		{"refund, no record", "bucket", 0, 3, 0, Refuse, func(tb *Table) { tb.Refund(tb.Find(100), now, 1, 0, Receipt{}) }, "w p s0 k0 s1 k1 h0 s2 k2 h0 s3 p w"},
		{"reset", "bucket", 0, 3, 0, Refuse, func(tb *Table) { tb.Reset(tb.Find(2)) }, "s0 k0 s1 k1 p ends+ s1? ends+"},
		{"refund by a receipt", "bucket", 0, 3, 0, Refuse, func(tb *Table) {
			p := tb.Find(2)
			ends := tb.Ends(p)
			first := tb.Take(p, now, 1, 0)
			tb.RefundBy(p, func() int64 { return now }, 1, 0, first.Receipt(1, 0, ends))
		}, "ends s0 k0 s1 k1 p w s1? s0 k0 s1 k1 p ends w s1?"},
		{"refund by a receipt of a tenure that was ended", "bucket", 0, 3, 0, Refuse, func(tb *Table) {
			first := tb.Take(tb.Find(2), now, 1, 0)
			tb.RefundBy(tb.Find(2), func() int64 { return now }, 1, 0, first.Receipt(1, 0, Ends{endBegins}))
		}, "s0 k0 s1 k1 p w s1? s0 k0 s1 k1 p w"},
		{"take, ahead of its clock", "bucket", 0, 3, 0, Refuse, func(tb *Table) {
			tb.TakeAt(tb.Find(2), now+1, now, 1, Quota{}, nil)
		}, "w p w p p s0 p w s1 p w s2 p w s3 p k0 k1 s1 p k1 s0 k0 s1 k1 p w leading leading? k1 s1?"},
		{"reserve", "bucket", 0, 3, 0, Refuse, func(tb *Table) { tb.Reserve(tb.Find(2), now, 1, 0, time.Minute) }, "s0 k0 s1 k1 p w s1?"},
		{"reserve, ahead", "bucket", 0, 3, 0, Refuse, func(tb *Table) { tb.Reserve(tb.Find(2), now, 5, 0, time.Minute) }, "s0 k0 s1 k1 p w s1 s0 k0 s1 k1 p w promised promised? k1 s1?"},
		{"reserve, refused", "bucket", 0, 3, 0, Refuse, func(tb *Table) { tb.Reserve(tb.Find(2), now, 5, 0, 0) }, "s0 k0 s1 k1 p w s1 s0 k0 s1 k1 p w s1"},
		{"sweep", "bucket", 2, 2, 1, Refuse, func(tb *Table) { tb.Sweep(now, nil) }, "w p w moving+ pace swept w? moving+ w l l? m s0 p w s0? w s1 p w s1? w s2 s3 p w k3 l h0 h0? s4 s5 s6 s7 s8 s9 s10 s11 l h0 h0? l= swept swept?"},
		{"sweep, again at that time", "bucket", 2, 2, 1, Refuse, func(tb *Table) { tb.Sweep(start, nil) }, "w w l l? m s0 p w k0 s1 p w k1 s2 s3 p w k3 l h0 h0? s4 s5 s6 s7 s8 s9 s10 s11 l h0 h0? l= swept"},
		{"sweep, beside another", "bucket", 2, 2, 1, Refuse, func(tb *Table) {
			tb.lowering.Poke(ownedBit | partialBit)
			tb.Sweep(now, nil)
		}, "w p w moving+ pace swept w? moving+ w l m s0 p w s0? w s1 p w s1? w s2 s3 p w s4 s5 s6 s7 s8 s9 s10 s11 swept swept?"},
		{"sweep, after one that was given up", "bucket", 2, 2, 1, Refuse, func(tb *Table) {
			tb.lowering.Poke(partialBit | swappedBit)
			tb.Sweep(now, nil)
		}, "w p w moving+ pace swept w? moving+ w l l? m s0 p w s0? w s1 p w s1? w s2 s3 p w k3 l h0 h0? s4 s5 s6 s7 s8 s9 s10 s11 l h0 h0? l= swept swept?"},
		{"take, new, an idle slot, the watermark has moved", "bucket", 12, 0, 0, Refuse, func(tb *Table) {
			tb.watermark.Poke(uint64(start) + 1)
			take(tb, 100, now, 1)
		}, "s0 k0 s1 k1 s2 k2 s3 k3 s4 k4 s5 k5 s6 k6 s7 k7 w p p s0 p w s1 p w s2 p w s3 p w s0 p k0 s0 p k0 w s1 p k1 w s2 p k2 w s3 p k3 w s4 p k4 w s5 p k5 w s6 p k6 w s7 p k7 w h0 k8 h0 k9 h0 k10 h0 k11 w p w moving+ pace swept w? moving+ w s0? p w k0= s0= k1 h0 k2 k3 h0 k4 k5 h0 k6 k7 h0 k8 k9 h0 k10 k11 p w k0 s0?"},
		{"sweep, given up", "bucket", 2, 2, 1, Refuse, func(tb *Table) { tb.Sweep(now, func() bool { return false }) }, "w p w moving+ pace swept w? moving+ w l l? m s0 p w s0? w s1 p w s1? w s2 s3 p w k3 l h0 h0? s4 s5 s6 s7 s8 s9 s10 s11 l h0 h0? l= swept swept?"},
		{"sweep, of an epoch", "bucket", 2, 2, 1, Refuse, func(tb *Table) { tb.SweepEpoch(now, nil) }, "w p w moving+ pace swept w? moving+ w p l l? m s0 p w k0 s1 p w k1 s2 s3 p w k3 l h0 h0? s4 s5 s6 s7 s8 s9 s10 s11 l h0 h0? l= swept swept?"},
		{"adopt", "bucket", 2, 2, 1, Refuse, func(tb *Table) { tb.Adopt(anotherPlan, clockAt(now)) }, "p w p w moving+ pace swept w? moving+ w pace= moving p= m s0 p p k0 w largest leading promised s0? s1 p p k1 w largest leading promised s1? s2 s3 p p k3 w largest leading promised s3? s4 s5 s6 s7 s8 s9 s10 s11 pace="},
		{"a leap of time", "bucket", 2, 2, 0, Refuse, func(tb *Table) { take(tb, 3, start+5*int64(tb.Plan().skew), 1) }, "p s0 k0 s1 k1 s2 k2 p w w p moving+ pace swept w? moving+ w p p s0 p w s1 p w s2 p w s3 p w k0 k1 h0 k2 s2 p k2 s0 k0 s1 k1 h0 s2 k2 p w k2 s2?"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tb := tableOf(t, algorithms[c.kind], c.idle, c.live, c.freed, c.overflow)
			assert.Equal(t, c.want, operations(tb, func() { c.call(tb) }))
		})
	}
}

// tableOf returns a table of twelve slots. First come idle records, whose keys took one token each long ago. Then come
// live records, whose keys took one token each 20 seconds later. Some of the live records were then freed.
func tableOf(t *testing.T, algorithm atomicbucket.Algorithm, idle, live, freed int, overflow Overflow) *Table {
	plan, err := NewPlan(algorithm, 0)
	require.NoError(t, err)
	slower := perSecond(t, 0.5, 7)
	anotherPlan = planOf(t, slower)
	anotherPlan.live = atomicbucket.Second
	tb := newTable(t, 1, 12, func(cfg *Config) { cfg.Plan, cfg.Overflow = plan, overflow })
	for key := range idle + live {
		at := start + 20*second
		if key < idle {
			at = start
		}
		require.Equal(t, Admitted, take(tb, uint64(1+key), at, 1))
		require.EqualValues(t, 1+key, tb.Find(1).slot(uint64(key)).key.Load())
	}
	for key := range freed {
		require.True(t, tb.Reset(tb.Find(uint64(idle+1+key))))
	}
	return tb
}

// labeled labels the keys as if they had last taken under a quota with its own numbers, so that the next take under
// such a quota finds them at once (R24).
func labeled(tb *Table, live int) {
	for i := range live {
		if w := &tb.Find(1).slot(uint64(i)).key; tb.buckets {
			w.Poke(w.Load() | tierMask)
		}
	}
}

var anotherPlan *Plan
