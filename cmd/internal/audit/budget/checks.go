package budget

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// A check looks for one pitfall of docs/budgets.md. It returns what it has measured. If it returns an error, it has
// found a fault or was skipped.
type check struct {
	pitfall, name string
	run           func(context.Context, *auditor) (found string, err error)
}

// parallelRequests is how many requests are sent at the same time.
const parallelRequests = 100

// checks returns all checks in order. The first two find out whether the budget can be measured.
func checks() []check {
	return append([]check{
		{"", "the budget of a key", checkBudget},
		{"1", "100 requests at once", parallel},
		{"1", "an estimate is held", holdsEstimate},
		{"2", "a refusal takes nothing", refusals},
		{"3", "a request without a bound", firstPasses},
		{"4", "a bound above the budget", aboveTheBudget},
		{"6", "a negative bound", negativeBound},
		{"7", "two bounds, the larger one second", holdsFor("max_completion_tokens", func(k *key, n, tokens int) gatewayRequest {
			return k.chat(n, 1, object{"max_completion_tokens": tokens})
		})},
		{"8", "a long prompt", holdsFor("the prompt", func(k *key, n, tokens int) gatewayRequest {
			text := strings.Repeat("word ", tokens*4/5)
			return k.chat(n, 1, object{"messages": []object{{"role": "user", "content": mark + strconv.Itoa(n) + " " + text}}})
		})},
		{"9", "several answers to one request", holdsFor("n", func(k *key, n, tokens int) gatewayRequest {
			return k.chat(n, tokens/5, object{"n": 5})
		})},
		{"10", "an image", image},
		{"11", "a small body with a large input", checkCost(smallBody)},
		{"12", "the bound of responses", holdsFor("max_output_tokens", func(k *key, n, tokens int) gatewayRequest {
			q := k.chat(n, 0, object{"messages": nil, "input": mark + strconv.Itoa(n), "max_output_tokens": tokens})
			q.path = "/v1/responses"
			return q
		})},
		{"13", "the list of models", checkFree(modelList)},
		{"14", "answers of status 400", checkFree(modelFails(http.StatusBadRequest))},
		{"14", "answers of status 500", checkFree(modelFails(http.StatusInternalServerError))},
		{"15", "a client that leaves before the first byte", clientLeaves(false)},
		{"15", "a client that leaves in the middle", clientLeaves(true)},
		{"16", "a client that leaves at [DONE]", checkCost(clientLeavesAtDone)},
		{"18", "a stream that breaks off", brokenStream},
		{"19", "a stream without a usage", withoutUsage},
		{"20", "an event that only the gateway asked for", hiddenUsage},
		{"27", "a compressed answer", checkCost(compressedAnswer)},
		{"28", "a usage of -600 and 15", hostileUsage("-600", "15")},
		{"28", "a usage in quotes", hostileUsage(`"2147483647"`, "15")},
		{"28", "a usage of 2^63-1", hostileUsage("9223372036854775807", "15")},
		{"28", "a usage of 1e999", hostileUsage("15", "1e999")},
		{"28", "a usage of 99999999999", hostileUsage("15", "99999999999")},
		{"30", "a usage that comes twice", checkCost(usageTwice)},
		{"30", "a request that the gateway sends again", retriedRequest},
		{"34", "what was used beyond the budget", debt},
		{"38", "the answer to a refused request", refusalForm},
	}, corpus()...)
}

func compare(got, want span) (string, error) {
	costs := strconv.Itoa(want.low)
	if want.high > want.low {
		costs = fmt.Sprintf("%d to %d", want.low, want.high)
	}
	found := fmt.Sprintf("charged %v, costs %s", got, costs)
	if !got.overlaps(want) {
		return found, fault(found)
	}
	return found, nil
}

// checkBudget checks whether each key has the budget that the options state.
func checkBudget(ctx context.Context, a *auditor) (string, error) {
	first := a.newKey().pay(ctx, a.Tokens/steps)
	if first.err != nil || !first.passed {
		return "", fmt.Errorf("%w: the model did not get the first request: %v. The audit is the model at %s: the gateway has to pass "+
			"requests on to that address", ErrNoBudget, first, a.Listen)
	}
	left, err := a.newKey().measureLeft(ctx, a.Tokens, a.Tokens/steps)
	if err == nil && !left.overlaps(span{a.Tokens, a.Tokens}) {
		err = fmt.Errorf("%w: a key is refused after %v tokens instead of %d: it has another budget, or it was used before", ErrNoBudget,
			left, a.Tokens)
		if left.high > 2*a.Tokens {
			err = fmt.Errorf("%w: a key is not refused after %d tokens", ErrNoBudget, left.low)
		}
	}
	return fmt.Sprintf("%v tokens", left), err
}

// parallel sends requests that cost ten times the budget in total, all at the same time.
func parallel(ctx context.Context, a *auditor) (string, error) {
	k := a.newKey()
	tokensEach := k.Tokens * 10 / parallelRequests
	release, events := make(chan struct{}), make(chan struct{}, 10*parallelRequests)
	number := a.model.add(func(w http.ResponseWriter, r *http.Request, _ request) {
		events <- struct{}{}
		select {
		case <-release:
		case <-r.Context().Done():
		}
		reply(w, jsonType, chatAnswer(tokensEach))
	})
	var senders sync.WaitGroup
	for range parallelRequests {
		senders.Go(func() {
			if !k.do(ctx, k.chat(number, tokensEach-promptTokens, nil)).passed {
				events <- struct{}{}
			}
		})
	}
	waitCtx, cancel := context.WithTimeout(ctx, requestTimeout/3) // a gateway may pass on fewer requests at a time
	defer cancel()
	for i := 0; i < parallelRequests && waitCtx.Err() == nil; i++ {
		select {
		case <-events:
		case <-waitCtx.Done():
		}
	}
	close(release)
	senders.Wait()
	passed := a.model.requestsFor(number)
	found := fmt.Sprintf("%d passed, which cost %d of %d tokens", passed, passed*tokensEach, k.Tokens)
	if passed == 0 {
		return found, fault("none of 100 requests passed, although there was enough for ten")
	}
	if passed*tokensEach > k.Tokens+tokensEach {
		return found, fault(fmt.Sprintf("%d requests at once passed, which cost %d of %d tokens", passed, passed*tokensEach, k.Tokens))
	}
	return found, nil
}

// holdsEstimate finds out whether the gateway holds an estimate of the cost while a request is in progress. If it does
// not, the checks of estimates are skipped.
func holdsEstimate(ctx context.Context, a *auditor) (string, error) {
	const tokens = 1200
	held, err := a.measureHeld(ctx, 2*tokens, 2*tokens/steps, 100, func(k *key, n int) gatewayRequest { return k.chat(n, tokens, nil) })
	if err != nil {
		return "", err
	}
	found := fmt.Sprintf("%v tokens are held of up to %d", held, tokens)
	if a.holdsEstimates = held.high >= tokens/2; !a.holdsEstimates {
		return found, fault("nothing is held before the answer: concurrent requests pass whatever they cost")
	}
	return found, nil
}

// holdsFor makes a check: before the answer, the gateway must hold tokens for the named part of a request.
func holdsFor(part string, ask func(k *key, number, tokens int) gatewayRequest) func(context.Context, *auditor) (string, error) {
	return func(ctx context.Context, a *auditor) (string, error) {
		if !a.holdsEstimates {
			return "", skip("the gateway holds nothing")
		}
		const tokens = 1200
		held, err := a.measureHeld(ctx, 2*tokens, 2*tokens/steps, 100, func(k *key, n int) gatewayRequest { return ask(k, n, tokens) })
		if err != nil {
			return "", err
		}
		found := fmt.Sprintf("%v tokens are held", held)
		if held.high < tokens*3/4 {
			return found, fault(fmt.Sprintf("%v tokens are held for a request that may cost %d: %s does not count", held, tokens, part))
		}
		return found, nil
	}
}

// image sends a request whose text has an image of 300 kB.
func image(ctx context.Context, a *auditor) (string, error) {
	if !a.holdsEstimates {
		return "", skip("the gateway holds nothing")
	}
	data := "data:image/png;base64," + base64.StdEncoding.EncodeToString(make([]byte, 225_000))
	held, err := a.measureHeld(ctx, 4000, 20, 100, func(k *key, n int) gatewayRequest {
		return k.chat(n, 1, object{"messages": []object{{"role": "user", "content": []object{
			{"type": "text", "text": mark + strconv.Itoa(n)}, {"type": "image_url", "image_url": object{"url": data}}}}}})
	})
	if err != nil {
		return "", err
	}
	found := fmt.Sprintf("%v tokens are held for an image of 300 kB", held)
	if held.high < 60 {
		return found, fault(found)
	}
	return found, nil
}

// refusals sends requests whose bound exceeds the tokens left. The gateway must not charge the requests that it
// refuses.
func refusals(ctx context.Context, a *auditor) (string, error) {
	const left, costs = 1500, 20
	paid := 0
	got, err := a.measureCharged(ctx, left, left/steps, func(k *key) error {
		for range 10 {
			if k.do(ctx, k.chat(k.payPlay(costs), left*2, nil)).passed {
				paid += costs
			}
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	return compare(got, span{paid, paid})
}

// firstPasses sends a request without a bound to a new key. The request must pass.
func firstPasses(ctx context.Context, a *auditor) (string, error) {
	tokens := a.Tokens / 2
	got, err := a.measureCharged(ctx, a.Tokens, a.Tokens/steps, func(k *key) error {
		if got := k.do(ctx, k.chat(k.payPlay(tokens), 0, nil)); got.err != nil || !got.passed {
			return fault(fmt.Sprintf("the first request of a key was not passed on: %v", got))
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	return compare(got, span{tokens, tokens})
}

// aboveTheBudget sends a request whose bound is above the complete budget. The gateway may refuse it.
func aboveTheBudget(ctx context.Context, a *auditor) (string, error) {
	tokens, paid := a.Tokens/2, 0
	got, err := a.measureCharged(ctx, a.Tokens, a.Tokens/steps, func(k *key) error {
		got := k.do(ctx, k.chat(k.payPlay(tokens), 999_999_999, nil))
		if got.err != nil {
			return fault(fmt.Sprintf("a request with a bound of 999999999 has no answer: %v", got))
		}
		if got.passed {
			paid = tokens
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	return compare(got, span{paid, paid})
}

// negativeBound measures how many tokens are held for a request with a bound below 0.
func negativeBound(ctx context.Context, a *auditor) (string, error) {
	held, err := a.measureHeld(ctx, 2400, 2400/steps, 100, func(k *key, n int) gatewayRequest { return k.chat(n, -1200, nil) })
	if refused := fault(""); errors.As(err, &refused) {
		return "", skip("a bound of -1200 " + err.Error())
	} else if err != nil {
		return "", err
	}
	found := fmt.Sprintf("%v tokens are held", held)
	if held.high < 0 {
		return found, fault(fmt.Sprintf("a bound of -1200 adds %d tokens to the budget while the request is in progress", -held.high))
	}
	return found, nil
}
