package budget

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/weir-go/weir/internal/pause"
)

// smallBudget is the number of tokens until which most checks spend a budget. It is small, so that it can be measured
// precisely, however large the budget is.
const smallBudget = 1500

// checkCost makes a check from act: the gateway must charge a cost in the span that act returns.
func checkCost(act func(context.Context, *key) (want span, err error)) func(context.Context, *auditor) (string, error) {
	return func(ctx context.Context, a *auditor) (string, error) {
		var want span
		got, err := a.measureCharged(ctx, smallBudget, smallBudget/steps, func(k *key) (err error) {
			want, err = act(ctx, k)
			return err
		})
		if err != nil {
			return "", err
		}
		return compare(got, want)
	}
}

// checkFree makes a check from act: the gateway must charge nothing for it.
func checkFree(act func(context.Context, *key) error) func(context.Context, *auditor) (string, error) {
	return checkCost(func(ctx context.Context, k *key) (span, error) { return span{}, act(ctx, k) })
}

// mustPass sends a request, and returns a fault if it does not pass.
func (k *key) mustPass(ctx context.Context, q gatewayRequest) (answer, error) {
	got := k.do(ctx, q)
	if !got.passed {
		return got, fault(fmt.Sprintf("a request was not passed on: %v", got))
	}
	return got, nil
}

func exactly(tokens int) span { return span{tokens, tokens} }

// smallBody makes an answer cost much more than its request's size suggests. This happens if an API has cached or
// stored the input.
func smallBody(ctx context.Context, k *key) (span, error) {
	const tokens = 900
	number := k.model.add(fixedPlay(jsonType, `{"choices":[{"message":{"role":"assistant","content":"ok"},"finish_reason":"stop","index":0}],`+
		chatUsage(strconv.Itoa(tokens-5), "5")+`}`))
	_, err := k.mustPass(ctx, k.chat(number, 5, nil))
	return exactly(tokens), err
}

func modelList(ctx context.Context, k *key) error {
	for i := range 20 {
		got := k.do(ctx, gatewayRequest{method: http.MethodGet, path: "/v1/models"})
		if got.refused() {
			return fault(fmt.Sprintf("a key is refused after %d requests for the list of models", i))
		}
		if got.err != nil || got.status != http.StatusOK {
			return skip(fmt.Sprintf("GET /v1/models: %v", got))
		}
	}
	return nil
}

// modelFails makes the model answer with an error.
func modelFails(status int) func(context.Context, *key) error {
	return func(ctx context.Context, k *key) error {
		number := k.model.add(func(w http.ResponseWriter, _ *http.Request, _ request) {
			w.Header().Set("Content-Type", jsonType)
			w.WriteHeader(status)
			reply(w, jsonType, `{"error":{"message":"no","type":"invalid_request_error"}}`)
		})
		for range 3 {
			if _, err := k.mustPass(ctx, k.chat(number, 300, nil)); err != nil {
				return err
			}
		}
		return nil
	}
}

// clientLeaves makes the client disconnect before an answer, or in the middle of it.
func clientLeaves(inTheMiddle bool) func(context.Context, *auditor) (string, error) {
	return checkCost(func(ctx context.Context, k *key) (span, error) {
		const tokens = 1000
		arrived, clientLeft := make(chan struct{}, 10), make(chan struct{}, 10)
		text := strings.Repeat("word ", tokens/2)
		number := k.model.add(func(w http.ResponseWriter, r *http.Request, _ request) {
			if inTheMiddle {
				reply(w, sseType, chatText(text))
			}
			arrived <- struct{}{}
			select {
			case <-r.Context().Done():
			case <-time.After(requestTimeout / 10): // the gateway continues to read
			}
			clientLeft <- struct{}{}
			panic(http.ErrAbortHandler)
		})
		q := k.chat(number, tokens, object{"stream": true})
		clientCtx, leave := context.WithCancel(ctx)
		defer leave()
		answered := make(chan answer, 1)
		if inTheMiddle {
			q.stopText = text[:40]
			go func() { answered <- k.do(clientCtx, q) }()
		} else {
			go func() { answered <- k.do(clientCtx, q) }()
			select {
			case <-arrived:
				leave()
			case got := <-answered:
				return span{}, fault(fmt.Sprintf("a request was not passed on: %v", got))
			}
		}
		if got := <-answered; !got.passed {
			return span{}, fault(fmt.Sprintf("a request was not passed on: %v", got))
		}
		leave()
		<-clientLeft
		return span{100, smallBudget}, nil
	})
}

// streamPlay returns a play that answers with a streamed chat. The stream has a text of the given number of tokens, and
// then the events.
func streamPlay(tokens int, events string) play {
	return fixedPlay(sseType, chatText(strings.Repeat("word ", tokens*4/5))+events)
}

// clientLeavesAtDone makes the client disconnect at [DONE], as SDKs do, while the model keeps the stream open.
func clientLeavesAtDone(ctx context.Context, k *key) (span, error) {
	const tokens = 300
	for range 3 {
		clientLeft := make(chan struct{}, 10)
		number := k.model.add(func(w http.ResponseWriter, r *http.Request, q request) {
			streamPlay(10, chatEnd+chatCost(tokens)+doneEvent)(w, r, q)
			select {
			case <-r.Context().Done():
			case <-time.After(requestTimeout / 10):
			}
			clientLeft <- struct{}{}
		})
		q := k.chat(number, tokens+100, object{"stream": true, "stream_options": object{"include_usage": true}})
		q.stopText = "[DONE]"
		if _, err := k.mustPass(ctx, q); err != nil {
			return span{}, err
		}
		<-clientLeft
	}
	return exactly(3 * tokens), nil
}

// brokenStream breaks a stream off after the stream has reported its cost up to that point.
func brokenStream(ctx context.Context, a *auditor) (string, error) {
	return checkCost(func(ctx context.Context, k *key) (span, error) {
		const tokens = 800
		number := k.model.add(func(w http.ResponseWriter, r *http.Request, q request) {
			begin := `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"tiny","choices":[{"index":0,"delta":{"role":` +
				`"assistant","content":"a"},"finish_reason":null}],` + chatUsage("15", "1") + "}\n\n"
			reply(w, sseType, begin+chatText(strings.Repeat("word ", tokens*4/5)))
			panic(http.ErrAbortHandler)
		})
		_, err := k.mustPass(ctx, k.chat(number, tokens, object{"stream": true}))
		return span{tokens / 2, smallBudget}, err
	})(ctx, a)
}

// withoutUsage makes a stream end normally without reporting its cost.
func withoutUsage(ctx context.Context, a *auditor) (string, error) {
	return checkCost(func(ctx context.Context, k *key) (span, error) {
		const tokens = 800
		_, err := k.mustPass(ctx, k.chat(k.model.add(streamPlay(tokens, chatEnd+doneEvent)), tokens, object{"stream": true}))
		return span{tokens / 4, smallBudget}, err
	})(ctx, a)
}

// hiddenUsage checks whether a client gets a stream's usage event without having asked for it.
func hiddenUsage(ctx context.Context, a *auditor) (string, error) {
	k, asksUsage := a.newKey(), false
	number := a.model.add(func(w http.ResponseWriter, r *http.Request, q request) {
		events := chatEnd
		var body struct {
			StreamOptions struct {
				IncludeUsage bool `json:"include_usage"`
			} `json:"stream_options"`
		}
		if err := json.Unmarshal(q.body, &body); err == nil && body.StreamOptions.IncludeUsage {
			events += chatCost(50)
			a.model.mu.Lock()
			asksUsage = true
			a.model.mu.Unlock()
		}
		streamPlay(10, events+doneEvent)(w, r, q)
	})
	got, err := k.mustPass(ctx, k.chat(number, 50, object{"stream": true}))
	if err != nil {
		return "", err
	}
	a.model.mu.Lock()
	defer a.model.mu.Unlock()
	if asksUsage && bytes.Contains(got.body, []byte(`"choices":[]`)) {
		return "", fault("the gateway asks for the usage of a stream, and passes its event to a client that has not asked for it")
	}
	return map[bool]string{true: "the gateway asks for the usage and hides it", false: "the gateway does not ask for the usage"}[asksUsage], nil
}

func compressedAnswer(ctx context.Context, k *key) (span, error) {
	const tokens = 300
	number := k.model.add(func(w http.ResponseWriter, _ *http.Request, _ request) {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, _ = z.Write([]byte(chatAnswer(tokens))) // writing into memory never fails
		_ = z.Close()
		w.Header().Set("Content-Encoding", "gzip")
		reply(w, jsonType, b.String())
	})
	for range 3 {
		q := k.chat(number, tokens+100, nil)
		q.field = [2]string{"Accept-Encoding", "gzip"}
		if _, err := k.mustPass(ctx, q); err != nil {
			return span{}, err
		}
	}
	return exactly(3 * tokens), nil
}

// usageTwice makes a stream report its usage in two events.
func usageTwice(ctx context.Context, k *key) (span, error) {
	const tokens = 500
	number := k.model.add(streamPlay(10, chatEnd+chatCost(tokens)+chatCost(tokens)+doneEvent))
	_, err := k.mustPass(ctx, k.chat(number, tokens+200, object{"stream": true, "stream_options": object{"include_usage": true}}))
	return exactly(tokens), err
}

// retriedRequest makes the first attempt of a request fail. A gateway that retries must charge the request once.
func retriedRequest(ctx context.Context, a *auditor) (string, error) {
	const tokens = 500
	var number int
	got, err := a.measureCharged(ctx, smallBudget, smallBudget/steps, func(k *key) error {
		number = k.model.add(func(w http.ResponseWriter, r *http.Request, q request) {
			if q.earlier == 0 {
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			reply(w, jsonType, chatAnswer(tokens))
		})
		_, err := k.mustPass(ctx, k.chat(number, tokens-promptTokens, nil))
		return err
	})
	if err != nil {
		return "", err
	}
	want := 0
	if a.model.requestsFor(number) > 1 {
		want = tokens
	}
	found, err := compare(got, exactly(want))
	return fmt.Sprintf("%s; sent %d times", found, a.model.requestsFor(number)), err
}

// hostileUsage makes an answer report an impossible usage. The budget must not grow, and no client may be locked out.
func hostileUsage(input, output string) func(context.Context, *auditor) (string, error) {
	return checkCost(func(ctx context.Context, k *key) (span, error) {
		number := k.model.add(fixedPlay(jsonType, `{"choices":[{"message":{"role":"assistant","content":"ok"},"finish_reason":"stop","index":0}],`+
			chatUsage(input, output)+`}`))
		_, err := k.mustPass(ctx, k.chat(number, 300, nil))
		return span{0, smallBudget / 2}, err
	})
}

func debt(ctx context.Context, a *auditor) (string, error) {
	return checkCost(func(ctx context.Context, k *key) (span, error) {
		number := k.model.add(fixedPlay(jsonType, chatAnswer(2*smallBudget)))
		_, err := k.mustPass(ctx, k.chat(number, 5, nil))
		return span{smallBudget, 2 * smallBudget}, err
	})(ctx, a)
}

func refusalForm(ctx context.Context, a *auditor) (string, error) {
	k := a.newKey()
	if err := k.spendTo(ctx, smallBudget); err != nil {
		return "", err
	}
	if _, err := k.measureLeft(ctx, smallBudget, smallBudget/steps); err != nil {
		return "", err
	}
	if err := pause.For(ctx, a.Settle); err != nil {
		return "", err
	}
	got := k.pay(ctx, smallBudget)
	if !got.refused() {
		return "", fault(fmt.Sprintf("a request passes although its key has nothing left: %v", got))
	}
	var form struct {
		Error struct{ Message string }
	}
	if err := json.Unmarshal(got.body, &form); err != nil || form.Error.Message == "" {
		return "", fault("a refusal is not in the form of OpenAI's errors, so that its SDK has no message")
	}
	wait := got.header.Get("Retry-After")
	if seconds, err := strconv.Atoi(wait); err == nil && seconds > 60 && got.header.Get("X-Should-Retry") != "false" {
		return "", fault(fmt.Sprintf("Retry-After is %d s without x-should-retry: false. SDKs ignore a wait above 60 s, and retry at once", seconds))
	}
	return fmt.Sprintf("status %d, Retry-After %q", got.status, wait), nil
}
