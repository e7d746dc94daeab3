package conformance

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestTheListIsRead: the parser finds mistakes in known.txt and reports their lines.
func TestTheListIsRead(t *testing.T) {
	lists, err := parseKnown("# a comment\n\nwait/leave | gRPC, Connect | 3.1 | it stays\nwait/order | gRPC | cannot | so\ncost/* | gRPC | 3.2 | all\n")
	require.NoError(t, err)
	assert.Equal(t, gap{step: "3.1", reason: "it stays"}, lists["Connect"]["wait/leave"])
	assert.Equal(t, gap{step: cannot, reason: "so"}, lists["gRPC"]["wait/order"])
	assert.Equal(t, gap{step: "3.2", reason: "all"}, lists["gRPC"]["cost/free"])
	assert.Empty(t, lists["httplimit"])
	for text, want := range map[string]string{
		"\nwait/leave | gRPC | 3.1":                                `known.txt:2: want case`,
		"wait/leave | gRPC | | it stays":                           `known.txt:1: want case`,
		"dance/* | gRPC | 3.1 | no":                                `there is no case "dance/*"`,
		"wait/dance | gRPC | 3.1 | no":                             `there is no case "wait/dance"`,
		"wait/leave | gopher | 3.1 | no":                           `"gopher" is not a front`,
		"wait/leave | gRPC | 3.1 | a\nwait/leave | gRPC | 3.2 | b": `known.txt:2: wait/leave is there twice for gRPC`,
	} {
		_, err := parseKnown(text)
		assert.ErrorContains(t, err, want)
	}
	_, err = gapsOf("gopher")
	assert.Error(t, err)
}

// TestTheListIsHeld: if a front does not behave as known.txt says, the case fails.
func TestTheListIsHeld(t *testing.T) {
	wrong, unsupported := errors.New("wrong"), fmt.Errorf("%w: no words", ErrUnsupported)
	assert.Empty(t, gap{}.judge(nil))
	assert.Contains(t, gap{}.judge(wrong), "not on the list: wrong")
	assert.Empty(t, gap{step: "3.4"}.judge(wrong))
	assert.Contains(t, gap{step: "3.4"}.judge(nil), "take it off")
	assert.Empty(t, gap{step: cannot, reason: "so"}.judge(unsupported))
	assert.Contains(t, gap{step: cannot, reason: "so"}.judge(wrong), "it is something else: wrong")
	assert.Contains(t, gap{step: cannot, reason: "so"}.judge(nil), "take it off")
	assert.Empty(t, gap{step: differs, reason: "so"}.judge(wrong))
	assert.Contains(t, gap{step: differs, reason: "so"}.judge(nil), "take it off")
}

// TestEveryCaseCanFail: every case fails against a front that gives one answer to all requests. There is one exception.
// A case that expects every request to be admitted does not fail against a front that admits every request.
func TestEveryCaseCanFail(t *testing.T) {
	t.Cleanup(func() { patience = usualPatience })
	patience = 200 * time.Millisecond
	names := map[string]bool{}
	for _, k := range Cases() {
		assert.False(t, names[k.Name], "%s is a duplicate", k.Name)
		names[k.Name] = true
		t.Run(k.Name, func(t *testing.T) {
			for _, answer := range []Answer{{Admitted: true}, {}, {Failed: true}, {Err: errors.New("no")}} {
				front := Front{
					InBubble: func(*Case) bool { return true }, store: func() *Store { return &Store{} },
					Start: func(env *Env, _ Config) (Server, error) { return wrong{env, answer}, nil },
				}
				run := front.run
				if k.Promise {
					run = front.promise
				}
				err := run(t, k)
				if answer.Admitted && (k.Name == "one limit/unlimited" || k.Name == "shadow/admits" || k.Name == "wait/shadow" ||
					k.Name == "store/lost open" || k.Name == "store/start") {
					assert.NoError(t, err, "to admit everything is what it expects")
					continue
				}
				assert.Error(t, err, "%+v to all requests", answer)
			}
		})
	}
}

type wrong struct {
	env    *Env
	answer Answer
}

func (w wrong) Send(ctx context.Context, r Request) Answer {
	if w.answer.Admitted {
		_, _ = w.env.Serve(ctx, r.ID)
	}
	return w.answer
}

func (wrong) Reload(Config) error { return nil }
func (wrong) Close()              {}
