package budget

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// A play acts as the model for all requests with one mark.
type play func(w http.ResponseWriter, r *http.Request, q request)

type request struct {
	body    []byte
	earlier int // how many requests with this mark came before
}

// A model is the server behind the gateway. A mark (a number) in a request's text selects the answer, because the
// gateway may change everything else.
type model struct {
	server http.Server
	done   chan error

	mu       sync.Mutex
	plays    map[int]play
	counts   map[int]int // number of requests, by the numbers of their marks
	bodiless int         // number of requests without a body
}

// mark begins each mark, before the number of the play.
const mark = "weir-audit-"

func startModel(ctx context.Context, address string) (*model, error) {
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("the model of the audit: %w", err)
	}
	m := &model{done: make(chan error, 1), plays: map[int]play{}, counts: map[int]int{}}
	m.server = http.Server{Handler: http.HandlerFunc(m.serve), ReadHeaderTimeout: time.Minute}
	go func() { m.done <- m.server.Serve(l) }()
	return m, nil
}

func (m *model) stop() error {
	err := m.server.Close()
	if serveErr := <-m.done; !errors.Is(serveErr, http.ErrServerClosed) {
		err = errors.Join(err, serveErr)
	}
	return err
}

// add makes the play p answer the requests with a new mark, and returns the number of the mark.
func (m *model) add(p play) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	number := len(m.plays) + 1
	m.plays[number] = p
	return number
}

func (m *model) requestsFor(number int) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.counts[number]
}

func (m *model) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 16<<20))
	if err != nil {
		return // the gateway has disconnected
	}
	if r.Method != http.MethodPost {
		m.mu.Lock()
		m.bodiless++
		m.mu.Unlock()
		reply(w, "application/json", `{"object":"list","data":[{"id":"tiny","object":"model","created":1,"owned_by":"weir"}]}`)
		return
	}
	number := markOf(body)
	m.mu.Lock()
	play, earlier := m.plays[number], m.counts[number]
	m.counts[number]++
	m.mu.Unlock()
	if play == nil {
		http.Error(w, `{"error":{"message":"this model answers weir audit only","type":"invalid_request_error"}}`, http.StatusBadRequest)
		return
	}
	play(w, r, request{body, earlier})
}

// markOf returns the number of the mark in a body; 0 if it has none.
func markOf(body []byte) int {
	_, after, _ := bytes.Cut(body, []byte(mark))
	digits := after[:0]
	for len(after) > len(digits) && after[len(digits)] >= '0' && after[len(digits)] <= '9' {
		digits = after[:len(digits)+1]
	}
	n, err := strconv.Atoi(string(digits))
	if err != nil {
		return 0
	}
	return n
}

func reply(w http.ResponseWriter, contentType, body string) {
	w.Header().Set("Content-Type", contentType)
	_, _ = io.WriteString(w, body) // an error means that the gateway has disconnected
	_ = http.NewResponseController(w).Flush()
}

func fixedPlay(contentType, body string) play {
	return func(w http.ResponseWriter, _ *http.Request, _ request) { reply(w, contentType, body) }
}

const (
	jsonType = "application/json"
	sseType  = "text/event-stream"
)

func chatUsage(input, output string) string {
	total := "0"
	in, inErr := strconv.Atoi(input)
	if out, err := strconv.Atoi(output); err == nil && inErr == nil {
		total = strconv.Itoa(in + out)
	} else if err == nil {
		total = input
	} else {
		total = output
	}
	return `"usage":{"prompt_tokens":` + input + `,"completion_tokens":` + output + `,"total_tokens":` + total + `}`
}

// chatAnswer returns a complete answer to a chat that reports the given cost.
func chatAnswer(tokens int) string {
	input := min(promptTokens, tokens)
	return `{"id":"chatcmpl-1","object":"chat.completion","created":1,"model":"tiny","choices":[{"index":0,"message":{"role":"assistant",` +
		`"content":"ok"},"finish_reason":"stop"}],` + chatUsage(strconv.Itoa(input), strconv.Itoa(tokens-input)) + `}`
}

func chatText(text string) string {
	return `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"tiny","choices":[{"index":0,"delta":{"role":` +
		`"assistant","content":` + strconv.Quote(text) + `},"finish_reason":null}]}` + "\n\n"
}

// chatEnd is the event that ends the text of a streamed chat. Later events have no choice.
const chatEnd = `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"tiny","choices":[{"index":0,"delta":{},` +
	`"finish_reason":"stop"}]}` + "\n\n"

func chatCost(tokens int) string {
	input := min(promptTokens, tokens)
	return `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"tiny","choices":[],` +
		chatUsage(strconv.Itoa(input), strconv.Itoa(tokens-input)) + "}\n\n"
}

const doneEvent = "data: [DONE]\n\n"
