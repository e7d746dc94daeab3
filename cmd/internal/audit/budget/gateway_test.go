package budget

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/weir-go/weir/cmd/internal/usage"
)

// A gateway is a proxy in front of a model that counts the tokens of each key, with at most one fault.
type gateway struct {
	upstream string
	limit    int
	fault    string
	client   http.Client

	mu     sync.Mutex
	left   map[string]int
	served []served
}

// served is a request in progress. The channel done is closed when the request is charged.
type served struct {
	key  string
	left context.Context // done when the client has disconnected
	done chan struct{}
}

// begin begins a request of a key. If clients of the key have disconnected, it first waits until their requests are
// charged.
func (g *gateway) begin(key string, r *http.Request) (end func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i := 0; i < len(g.served); {
		if s := g.served[i]; s.key == key && s.left.Err() != nil {
			g.mu.Unlock()
			<-s.done
			g.mu.Lock()
			i = 0
			continue
		}
		i++
	}
	s := served{key, r.Context(), make(chan struct{})}
	g.served = append(g.served, s)
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.served = slices.DeleteFunc(g.served, func(other served) bool { return other.done == s.done })
		close(s.done)
	}
}

func (g *gateway) is(fault string) bool { return g.fault == fault }

// take takes tokens of a key if that many are left. If must is true, it takes them in any case. A negative number gives
// tokens back.
func (g *gateway) take(key string, tokens int, must bool) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, ok := g.left[key]; !ok {
		g.left[key] = g.limit
	}
	if !must && g.left[key] < tokens && !g.is("refuses nothing") {
		if g.is("refusals are charged") {
			g.left[key] -= 100
		}
		return false
	}
	if g.left[key] -= tokens; g.is("no debt") {
		g.left[key] = max(g.left[key], 100)
	}
	return true
}

// boundsOf returns how a request to a path can bound its answer.
func boundsOf(path string) *usage.Bounds {
	switch {
	case strings.HasSuffix(path, "/responses"):
		return &usage.Bounds{Fields: [][]string{{"max_output_tokens"}}}
	case strings.Contains(path, ":"):
		return &usage.Bounds{Object: []string{"generationConfig"}, Fields: [][]string{{"maxOutputTokens"}}}
	case strings.HasPrefix(path, "/model/"):
		return &usage.Bounds{Object: []string{"inferenceConfig"}, Fields: [][]string{{"maxTokens"}}}
	case strings.HasPrefix(path, "/api/"):
		return &usage.Bounds{Object: []string{"options"}, Fields: [][]string{{"num_predict"}}}
	}
	return &usage.Bounds{Fields: [][]string{{"max_tokens"}, {"max_completion_tokens"}}}
}

func (g *gateway) estimate(r *http.Request, body []byte) int {
	var bound int
	var raw map[string]json.RawMessage
	_ = json.Unmarshal(body, &raw) // a body that is not JSON has no bound
	_ = json.Unmarshal(raw["max_tokens"], &bound)
	switch {
	case g.is("n does not count"):
		delete(raw, "n")
	case g.is("the second bound does not count"):
		delete(raw, "max_completion_tokens")
	case g.is("the bound of responses does not count"):
		delete(raw, "max_output_tokens")
	}
	read, _ := json.Marshal(raw)
	request := usage.ReadRequest(read, int64(len(read)), boundsOf(r.URL.Path))
	input, output := int(request.Input()), int(request.Output(200))
	switch {
	case g.is("holds nothing"):
		return 1
	case g.is("the prompt does not count"):
		input = 1
	case g.is("an image is text"):
		input = len(body) / 4
	case g.is("an image is nothing") && input > 1000:
		input = 1
	case g.is("a negative bound is held"):
		output = max(output, 0)
		if bound < 0 {
			output = bound
		}
	case g.is("no bound is all") && !bytes.Contains(body, []byte("max_")):
		output = 10 * g.limit
	case r.Method == http.MethodGet && !g.is("a list costs"):
		return 0
	}
	if estimate := min(input+output, g.limit); !g.is("no bound is all") {
		return estimate
	}
	return input + output
}

// ServeHTTP passes on a request, and charges its key.
func (g *gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	key := r.Header.Get("X-Team")
	defer g.begin(key, r)()
	body, _ := io.ReadAll(r.Body)
	held := g.estimate(r, body)
	if !g.take(key, held, false) {
		g.refuse(w)
		return
	}
	if g.is("asks for the usage openly") && bytes.Contains(body, []byte(`"stream":true`)) {
		body = bytes.Replace(body, []byte(`"stream":true`), []byte(`"stream":true,"stream_options":{"include_usage":true}`), 1)
	}
	resp, tries := g.pass(r, body)
	if resp == nil {
		g.take(key, g.broken(held), true)
		return
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 400 && !g.is("errors cost") && (resp.StatusCode < 500 || !g.is("errors of the server cost")) {
		g.take(key, -held, true)
	}
	maps.Copy(w.Header(), resp.Header)
	w.WriteHeader(resp.StatusCode)
	answer := usage.NewAnswer(resp.Header.Get("Content-Type"), resp.Header.Get("Content-Encoding"), usage.Models)
	var all bytes.Buffer
	settled := resp.StatusCode >= 400
	if g.is("above the budget is free") && held >= g.limit {
		g.take(key, -held, true)
		settled = true
	}
	settle := func() {
		u, final := answer.Final()
		if settled || !final {
			return
		}
		settled = true
		g.take(key, g.cost(u, all.Bytes())*tries-held, true)
	}
	buffer := make([]byte, 4096)
	for {
		n, err := resp.Body.Read(buffer)
		all.Write(buffer[:n])
		if !g.is("compressed is not read") || resp.Header.Get("Content-Encoding") == "" {
			answer.Write(buffer[:n])
		}
		if !g.is("settles at the end") {
			settle()
		}
		_, _ = w.Write(buffer[:n])
		_ = http.NewResponseController(w).Flush()
		if err == io.EOF {
			answer.End()
			settle()
			break
		} else if err != nil || r.Context().Err() != nil {
			if !settled {
				g.take(key, g.brokenOff(held, all.Bytes())-held, true)
			}
			answer.Close()
			panic(http.ErrAbortHandler)
		}
	}
	if !settled && g.is("no usage is free") {
		g.take(key, -held, true)
	}
}

// pass sends a request to the upstream. It returns the answer (nil if there was none) and how often the request is
// charged.
func (g *gateway) pass(r *http.Request, body []byte) (*http.Response, int) {
	for tries := 1; ; tries++ {
		q, _ := http.NewRequestWithContext(r.Context(), r.Method, g.upstream+r.URL.RequestURI(), bytes.NewReader(body))
		q.Header = r.Header.Clone()
		resp, err := g.client.Do(q)
		if err != nil {
			return nil, 1
		}
		if resp.StatusCode != http.StatusServiceUnavailable || tries > 1 || !strings.HasPrefix(g.fault, "sent again") {
			if g.is("sent again and charged again") {
				return resp, tries
			}
			return resp, 1
		}
		_ = resp.Body.Close()
	}
}

// broken returns how many tokens are charged in addition to the held tokens if there was no answer.
func (g *gateway) broken(held int) int {
	if g.is("leaving early is free") {
		return -held
	}
	return 0
}

// brokenOff returns the cost of a request whose answer broke off.
func (g *gateway) brokenOff(held int, said []byte) int {
	switch {
	case g.is("leaving in the middle is free") && !bytes.Contains(said, []byte("prompt_tokens")):
		return 0
	case g.is("what was said so far is final") && bytes.Contains(said, []byte("prompt_tokens")):
		return 16
	case g.is("settles at the end"):
		return held / 2
	}
	return held
}

func (g *gateway) cost(u usage.Usage, said []byte) int {
	switch {
	case g.is("hostile numbers are taken"):
		return g.said(said)
	case g.is("a write to the cache is free"):
		return int(u.Total - u.CacheWrite)
	case g.is("a hit of the cache is free"):
		return int(u.Total - u.Cached)
	case g.is("a large input is cut"):
		return int(min(u.Total, 200))
	case g.is("each usage is charged"):
		return int(u.Total) * max(bytes.Count(said, []byte("total_tokens")), 1)
	}
	return int(u.Total)
}

// The method said returns the total tokens that an answer reports, even if negative or with a fraction.
func (g *gateway) said(all []byte) (n int) {
	_, after, _ := bytes.Cut(all, []byte(`"total_tokens":`))
	var number json.Number
	_ = json.NewDecoder(bytes.NewReader(after)).Decode(&number)
	value, _ := number.Float64()
	return int(min(max(value, -1e9), 1e9))
}

func (g *gateway) refuse(w http.ResponseWriter) {
	w.Header().Set("Retry-After", "3600")
	if !g.is("SDKs are told to retry") {
		w.Header().Set("X-Should-Retry", "false")
	}
	w.WriteHeader(http.StatusTooManyRequests)
	if !g.is("a form of its own") {
		_, _ = io.WriteString(w, `{"error":{"message":"nothing is left","type":"tokens"}}`)
	}
}
