package overshoot

import (
	"context"
	_ "embed"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/redis/rueidis"
)

//go:embed settle.lua
var settleText string

// A settler is one node of the common hybrid, for one key. It decides by the last level of the store and its own tokens
// since then.
type settler struct {
	client      rueidis.Client
	script      *rueidis.Lua
	key         string
	rate, burst float64 // tokens per second, and tokens

	mu        sync.Mutex
	level     float64 // the level at asOf
	asOf      time.Time
	unsettled float64
}

// If settle fails, the next call adds the tokens.
func (s *settler) settle(ctx context.Context) error {
	s.mu.Lock()
	count := s.unsettled
	s.mu.Unlock()
	text, err := s.script.Exec(ctx, s.client, []string{s.key}, []string{
		strconv.FormatFloat(s.rate, 'g', -1, 64), strconv.FormatFloat(count, 'g', -1, 64),
	}).ToString()
	if err != nil {
		return err
	}
	level, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return fmt.Errorf("overshoot: the store's level: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.level, s.asOf = level, time.Now()
	s.unsettled -= count
	return nil
}

func (s *settler) allow(n uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	level := max(0, s.level-time.Since(s.asOf).Seconds()*s.rate) + s.unsettled
	if level+float64(n) > s.burst {
		return false
	}
	s.unsettled += float64(n)
	return true
}
