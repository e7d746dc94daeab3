package budget

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/weir-go/weir/internal/pause"
)

// promptTokens is what the model reports as the cost of the shortest prompt. It is close to the real cost.
const promptTokens = 15

const requestTimeout = 30 * time.Second

// steps is how many requests measure the rest of a budget.
const steps = 60

// ErrNoBudget means that the gateway's budget differs from the budget in the options, so nothing can be measured.
var ErrNoBudget = errors.New("the budget cannot be measured")

// A key is one key of the gateway. It has its own budget.
type key struct {
	*auditor
	number int
}

// A span is a range that contains a number of tokens. The exact number is unknown, because each request of a
// measurement costs several tokens.
type span struct{ low, high int }

func (s span) String() string { return fmt.Sprintf("%d to %d", max(s.low, 0), s.high) }

// overlaps reports whether the spans overlap. If they do, the two numbers may be equal.
func (s span) overlaps(want span) bool { return s.low <= want.high && s.high >= want.low }

func (a *auditor) newKey() *key {
	a.keys++
	return &key{a, a.keys}
}

type answer struct {
	status int
	header http.Header
	body   []byte
	passed bool // the model has received the request
	err    error
}

// refused reports whether the gateway itself has answered that there is no budget left.
func (a answer) refused() bool {
	return !a.passed && a.err == nil && (a.status == http.StatusTooManyRequests || a.status == http.StatusForbidden ||
		a.status == http.StatusPaymentRequired)
}

// String describes how the gateway answered.
func (a answer) String() string {
	if a.err != nil {
		return a.err.Error()
	}
	return fmt.Sprintf("status %d", a.status)
}

type gatewayRequest struct {
	method, path string
	body         string
	number       int    // number of its play
	stopText     string // the client disconnects when it has read this; "" for the end of the answer
	field        [2]string
}

func (k *key) do(ctx context.Context, q gatewayRequest) (a answer) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	path, query, _ := strings.Cut(q.path, "?")
	target := k.URL.JoinPath(path)
	target.RawQuery = query
	r, err := http.NewRequestWithContext(ctx, q.method, target.String(), strings.NewReader(q.body))
	if err != nil {
		a.err = err
		return a
	}
	for _, f := range append([][2]string{{"Content-Type", jsonType}, {"User-Agent", k.UserAgent}, {"Accept-Encoding", "identity"}, q.field}, k.Fields...) {
		if f[0] != "" {
			r.Header.Set(f[0], strings.ReplaceAll(f[1], "{n}", strconv.Itoa(k.number)))
		}
	}
	before := k.model.requestsFor(q.number)
	k.requests.Add(1)
	resp, err := k.client.Do(r)
	if err != nil {
		a.err, a.passed = err, k.model.requestsFor(q.number) > before
		return a
	}
	a.status, a.header = resp.StatusCode, resp.Header
	a.body, a.err = readUntil(resp.Body, q.stopText)
	if a.err = errors.Join(a.err, resp.Body.Close()); a.err != nil {
		a.err = fmt.Errorf("%s %s: %w", q.method, target, a.err)
	}
	a.passed = k.model.requestsFor(q.number) > before
	return a
}

// readUntil reads up to the text, or to the end.
func readUntil(r io.Reader, text string) (body []byte, err error) {
	buffer := make([]byte, 8<<10)
	for {
		n, err := r.Read(buffer)
		body = append(body, buffer[:n]...)
		if text != "" && bytes.Contains(body, []byte(text)) || errors.Is(err, io.EOF) {
			return body, nil
		}
		if err != nil {
			return body, err
		}
		if len(body) > 16<<20 {
			return body, errors.New("an answer of more than 16 MiB")
		}
	}
}

type object = map[string]any

// chat returns a request for a chat. Its prompt is the mark that selects the play. The parameter fields has further
// fields of the body; nil removes a field. A bound of 0 means no bound.
func (k *key) chat(number, bound int, fields object) gatewayRequest {
	body := object{"model": k.Model, "messages": []object{{"role": "user", "content": mark + strconv.Itoa(number)}}}
	if bound != 0 {
		body["max_tokens"] = bound
	}
	for name, value := range fields {
		if body[name] = value; value == nil {
			delete(body, name)
		}
	}
	text, err := json.Marshal(body)
	if err != nil {
		panic(err) // this package made the value, so it is valid
	}
	return gatewayRequest{method: http.MethodPost, path: "/v1/chat/completions", body: string(text), number: number}
}

func (k *key) pay(ctx context.Context, tokens int) answer {
	return k.do(ctx, k.chat(k.payPlay(tokens), max(tokens-promptTokens, 1), nil))
}

// payPlay makes a play whose chat costs the given number of tokens, and returns its mark.
func (a *auditor) payPlay(tokens int) int {
	number, ok := a.payPlays[tokens]
	if !ok {
		number = a.model.add(fixedPlay(jsonType, chatAnswer(tokens)))
		a.payPlays[tokens] = number
	}
	return number
}

// spendTo spends the complete budget except for the remaining tokens.
func (k *key) spendTo(ctx context.Context, remaining int) error {
	if remaining == k.Tokens {
		return nil
	}
	if a := k.pay(ctx, k.Tokens-remaining); !a.passed || a.err != nil {
		return fmt.Errorf("%w: a request of %d tokens of a budget of %d did not pass: %v", ErrNoBudget, k.Tokens-remaining, k.Tokens, a)
	}
	return nil
}

// measureLeft measures how many tokens of a budget are left. It sends requests that cost unit tokens each, until one is
// refused. If none is refused, it stops when they have cost three times the expected number of tokens. A gateway that
// holds estimates refuses when less than a unit is left. Other gateways may admit more tokens than are left.
func (k *key) measureLeft(ctx context.Context, expected, unit int) (span, error) {
	for n := 0; ; n++ {
		a := k.pay(ctx, unit)
		switch {
		case a.refused():
			return span{(n - 1) * unit, (n + 2) * unit}, nil
		case a.err != nil || !a.passed:
			return span{}, fmt.Errorf("a request of %d tokens: %v", unit, a)
		case n > 3*expected/unit:
			return span{n*unit - 2*unit, 1 << 40}, nil
		}
	}
}

// measureCharged measures what the function act costs. It spends the tokens of a new key except for the remaining
// tokens, and calls act. Then it measures what is left, with requests that cost unit tokens each.
func (a *auditor) measureCharged(ctx context.Context, remaining, unit int, act func(*key) error) (span, error) {
	k := a.newKey()
	if err := k.spendTo(ctx, remaining); err != nil {
		return span{}, err
	}
	if err := act(k); err != nil {
		return span{}, err
	}
	if err := pause.For(ctx, a.Settle); err != nil {
		return span{}, err
	}
	left, err := k.measureLeft(ctx, remaining, unit)
	return span{remaining - left.high, remaining - left.low}, err
}

// measureHeld measures how many tokens the gateway holds for a request that has no answer yet. If the gateway does not
// pass the request on, the error is a fault.
func (a *auditor) measureHeld(ctx context.Context, remaining, unit, tokens int, ask func(k *key, number int) gatewayRequest) (held span, err error) {
	arrived, release := make(chan struct{}, 100), make(chan struct{})
	number := a.model.add(func(w http.ResponseWriter, r *http.Request, _ request) {
		arrived <- struct{}{}
		select {
		case <-release:
		case <-r.Context().Done():
		}
		reply(w, jsonType, chatAnswer(tokens))
	})
	answered := make(chan answer, 1)
	isSent := false
	held, err = a.measureCharged(ctx, remaining, unit, func(k *key) error {
		isSent = true
		go func() { answered <- k.do(ctx, ask(k, number)) }()
		select {
		case <-arrived:
			return nil
		case got := <-answered:
			answered <- got
			return fault(fmt.Sprintf("was not passed on: %v", got))
		}
	})
	if close(release); isSent {
		<-answered
	}
	return held, err
}

// A fault is an error that says what is wrong with a gateway.
type fault string

func (f fault) Error() string { return string(f) }

// A skip is the reason why a check was skipped.
type skip string

func (s skip) Error() string { return string(s) }
