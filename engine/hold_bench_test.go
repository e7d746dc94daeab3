package engine

import "testing"

// BenchmarkHold compares a hold with the take that it includes.
func BenchmarkHold(b *testing.B) {
	l, err := New(TokenBucket(PerSecond(1e9), 1<<30), MaxKeys(1000))
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	k := l.Key("tenant 7")
	b.Run("take", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			l.TakeKey(k, 1)
		}
	})
	b.Run("receipt", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			l.TakeReceipt(k, 1)
		}
	})
	b.Run("hold", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, h := l.Hold(k, 1)
			_ = &h
		}
	})
	b.Run("settle", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, h := l.Hold(k, 2)
			h.Settle(1)
		}
	})
}
