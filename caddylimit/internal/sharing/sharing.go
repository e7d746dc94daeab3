// Package sharing reads the options by which several machines share the zones of a handler.
package sharing

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/weir-go/weir/redislimit"

	"github.com/weir-go/weir/caddylimit/internal/directive"
	"github.com/weir-go/weir/caddylimit/internal/zone"
)

// Sharing contains the options by which several machines share the zones of the handler that embeds it.
type Sharing struct {
	// Store is the address of the Redis or Valkey store of all limits without local, such as redis://host:6379. It may
	// have placeholders, such as {env.REDIS_URL}.
	Store string `json:"store,omitempty"`
	// OnLoss is what happens to requests while the store is lost: share (the default) admits this machine's share;
	// closed answers 503; open admits all.
	OnLoss string `json:"on_loss,omitempty"`
	// Nodes is the approximate number of machines that share the store, 1 to 100,000; the default is 4. The number
	// determines the size of a share. It also determines from which size on machines lease limits.
	Nodes int `json:"nodes,omitempty"`
	// Share is the percentage of the limits that this machine admits while the store is lost, 1% to 100%. The default
	// is 1/Nodes.
	Share string `json:"share,omitempty"`
	// Timeout is the longest time that a request waits for the store, 1ms to 10s. The default is 50ms.
	Timeout caddy.Duration `json:"timeout,omitempty"`
}

// Options returns the options of the Caddyfile that set the fields of s.
func Options(s *Sharing) []directive.Option {
	return []directive.Option{
		directive.Once("store", directive.Text(&s.Store)),
		directive.Once("on_loss", directive.Text(&s.OnLoss)),
		directive.Once("nodes", directive.Integer(&s.Nodes, 1, maxNodes)),
		directive.Once("share", directive.Text(&s.Share)),
		directive.Once("timeout", directive.Duration(&s.Timeout)),
	}
}

const maxNodes = 100_000

// Spec returns the settings that all zones of the handler share.
func Spec(s *Sharing) (spec zone.Spec, err error) {
	if spec.Store, err = address(s.Store); err != nil {
		return spec, err
	}
	if spec.OnLoss, err = parseOnLoss(s.OnLoss); err != nil {
		return spec, err
	}
	if spec.Share, err = parseShare(s.Share); err != nil {
		return spec, err
	}
	spec.Nodes, spec.Timeout = s.Nodes, time.Duration(s.Timeout)
	switch {
	case s.Nodes < 0 || s.Nodes > maxNodes:
		return spec, fmt.Errorf("nodes %d: want 1 to %d, or 0 for 4", s.Nodes, maxNodes)
	case s.Timeout != 0 && (spec.Timeout < time.Millisecond || spec.Timeout > 10*time.Second):
		return spec, fmt.Errorf("timeout %v: want 1ms to 10s", spec.Timeout)
	case spec.Store == "" && s.Timeout != 0:
		return spec, fmt.Errorf("timeout %v: it needs a store", spec.Timeout)
	case spec.Store == "" && s.OnLoss != "":
		return spec, fmt.Errorf("on_loss %s: it needs a store", s.OnLoss)
	case spec.Store == "" && s.Nodes != 0:
		return spec, fmt.Errorf("nodes %d: it needs a store", s.Nodes)
	case spec.Store == "" && s.Share != "":
		return spec, fmt.Errorf("share %s: it needs a store", s.Share)
	case spec.OnLoss != redislimit.FailShare && s.Share != "":
		return spec, fmt.Errorf("share %s: on_loss %v admits no share: leave one of the two out", s.Share, spec.OnLoss)
	}
	return spec, nil
}

// address replaces the placeholders in a store's address, such as {env.REDIS_URL}. An unknown or empty placeholder is
// an error.
func address(text string) (string, error) {
	if text == "" {
		return "", nil
	}
	replaced, err := caddy.NewReplacer().ReplaceOrErr(text, true, true)
	if err == nil && replaced == "" {
		err = errors.New("it is empty")
	}
	if err != nil {
		return "", fmt.Errorf("the address of the store: %w", err)
	}
	return replaced, nil
}

// parseOnLoss reads a failure policy. "" stands for share.
func parseOnLoss(text string) (redislimit.FailurePolicy, error) {
	for _, p := range []redislimit.FailurePolicy{redislimit.FailShare, redislimit.FailClosed, redislimit.FailOpen} {
		if text == p.String() || text == "" {
			return p, nil
		}
	}
	return 0, fmt.Errorf("on_loss %q: want share, closed or open", text)
}

// parseShare reads a part of a limit, in percent. It returns 0 for "".
func parseShare(text string) (percent int, err error) {
	if text == "" {
		return 0, nil
	}
	number, hasPercent := strings.CutSuffix(text, "%")
	if percent, err = strconv.Atoi(number); err != nil || !hasPercent || percent < 1 || percent > 100 {
		return 0, fmt.Errorf("share %q: want 1%% to 100%%", text)
	}
	return percent, nil
}
