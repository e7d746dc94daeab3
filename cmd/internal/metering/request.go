package metering

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/weir-go/weir/cmd/internal/rulefile"
	"github.com/weir-go/weir/cmd/internal/usage"
	paths "github.com/weir-go/weir/httplimit/reading"
)

// Meters has the meters of a configuration.
type Meters struct {
	list   []*Meter
	states *States
	client func(*http.Request) netip.Prefix
}

// NewMeters combines meters. The function client returns the client of a request. The request's body counts for this
// client's share of the memory for bodies. For the zero Prefix, there is no share: the body may use all the memory.
func NewMeters(meters []*Meter, states *States, client func(*http.Request) netip.Prefix) *Meters {
	return &Meters{meters, states, client}
}

// Of returns the meter of a rule, or nil if the rule has none. Meters may be nil.
func (ms *Meters) Of(rule string) *Meter {
	if ms == nil {
		return nil
	}
	for _, m := range ms.list {
		if m.Rule == rule {
			return m
		}
	}
	return nil
}

// A Request has what meters know about a request.
type Request struct {
	context.Context
	API            rulefile.API
	meters         []*Meter // the meters of the rules that apply to it
	certainPath    string   // the path; "" if it is not certain which endpoint of an API it names
	body           usage.Request
	isComplete     bool         // its complete body was read
	isEmbedding    bool         // it is for embeddings, so it has no output
	usageRequested bool         // weir has asked for the usage, because the client has not
	hasPathModel   bool         // the path names a model, or it is not clear whether it does
	pathModel      string       // the model that the path names; "" if it is not clear
	editor         *boundEditor // lowers the bounds of the answer; nil if that is not possible
	memory         claim        // memory for its body
}

type requestKey struct{}

// Value implements [context.Context].
func (q *Request) Value(key any) any {
	if _, ok := key.(requestKey); ok {
		return q
	}
	return q.Context.Value(key)
}

// requestOf returns the Request that [Meters.Read] has made for r, or else an empty one.
func requestOf(r *http.Request) *Request {
	q, _ := r.Context().Value(requestKey{}).(*Request)
	if q == nil {
		q = &Request{API: rulefile.APIOpenAI}
	}
	return q
}

func (q *Request) output(defaultOutput uint64) uint64 {
	if q.isEmbedding {
		return 0
	}
	return q.body.Output(defaultOutput)
}

// IsFree reports whether a request costs no tokens because it does not ask a model for an answer. A GET can ask a model
// by its body or by a WebSocket, as in realtime APIs.
func IsFree(r *http.Request) bool {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodDelete, http.MethodTrace:
		return r.ContentLength == 0 && r.Header.Get("Upgrade") == ""
	}
	path := r.URL.Path
	if path == "/v1/messages/count_tokens" || path == "/v1/responses/input_tokens" {
		return true
	}
	_, model, hasModel := strings.Cut(path, "/models/")
	name, countsTokens := strings.CutSuffix(model, ":countTokens")
	return hasModel && countsTokens && r.URL.RawPath == "" && !strings.ContainsFunc(name, func(c rune) bool {
		return c != '-' && c != '.' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z')
	}) && !strings.Contains(name, "..")
}

// modelPaths find the model in the path of a request. Servers of these APIs then ignore a model in the body. The letter
// case does not matter, because it does not matter at Azure. Azure's deployments stand for models.
var modelPaths = map[rulefile.API]*regexp.Regexp{
	rulefile.APIOpenAI:    regexp.MustCompile(`(?i)/(?:deployments|engines)/([^/]*)/`),
	rulefile.APIAnthropic: regexp.MustCompile(`(?i)/models/([^:]*):`), // at Vertex AI
	rulefile.APIGemini:    regexp.MustCompile(`(?i)/models/([^:]*):`),
	rulefile.APIBedrock:   regexp.MustCompile(`(?i)/model/([^/]*)/`),
}

// modelIn returns the model that the path of a request names. ok is false if it names none.
func modelIn(api rulefile.API, path string) (model string, ok bool) {
	if pattern := modelPaths[api]; pattern != nil {
		if found := pattern.FindStringSubmatch(path); found != nil {
			return found[1], true
		}
	}
	return "", false
}

// model returns the model that the request names. It is "" if the request was not read completely or names several
// models. It is also "" for a batch, because each part of a batch names a model.
func (q *Request) model() string {
	switch {
	case q.hasPathModel:
		return q.pathModel
	case q.isTypical():
		return q.body.Model
	}
	return ""
}

// isTypical reports whether the request is like other requests for its model. Then the usual cost of the model can be
// learned from it, and can estimate its cost. A request that is a batch or was not read completely is not like others.
func (q *Request) isTypical() bool { return q.isComplete && !q.body.IsBatch() }

func apiOf(path string) rulefile.API {
	switch {
	case strings.Contains(path, "/v1/messages") || strings.HasSuffix(path, "/v1/complete"):
		return rulefile.APIAnthropic
	case strings.Contains(path, ":generateContent") || strings.Contains(path, ":streamGenerateContent") ||
		strings.HasSuffix(path, "mbedContents") || strings.HasSuffix(path, ":embedContent"):
		return rulefile.APIGemini
	case strings.HasPrefix(path, "/api/") && !strings.HasSuffix(path, "/completions"):
		return rulefile.APIOllama
	case strings.HasPrefix(path, "/model/"):
		return rulefile.APIBedrock
	}
	return rulefile.APIOpenAI
}

// endpoints has the segments, in lower case, that name an endpoint of an API.
var endpoints = []string{
	"chat", "completions", "responses", "messages", "complete", "generate", "embed", "embeddings", "converse", "converse-stream",
	"invoke", "invoke-with-response-stream", "rawpredict", "streamrawpredict", "generatecontent", "streamgeneratecontent",
	"embedcontent", "batchembedcontents", "batchgeneratecontent", "completion", "infill", "generate_stream", "invocations",
	"predict", "serverstreamingpredict", "generations", "transcriptions", "runs",
}

// certainPath returns the path of a request, or "" if it is not certain which endpoint of an API gets the request. Then
// servers read the path in several ways, or it names several endpoints. A server may ignore what follows the first one.
func certainPath(r *http.Request) string {
	if !paths.HasOneReading(r) && !paths.HasOneReading(&http.Request{URL: withPlainModel(r.URL)}) {
		return ""
	}
	number, previous, isModelChat := 0, "", false
	for segment := range strings.FieldsFuncSeq(strings.ToLower(r.URL.Path), func(c rune) bool { return c == '/' || c == ':' }) {
		isModel := previous == "deployments" || previous == "engines" || previous == "models" || previous == "model"
		switch {
		case segment == "completions" && isModelChat:
			return "" // the model's completions, but it ends like a path for chats
		case slices.Contains(endpoints, segment) && !isModel && (segment != "completions" || previous != "chat"):
			number++
		}
		previous, isModelChat = segment, isModel && segment == "chat"
	}
	if number > 1 {
		return ""
	}
	return r.URL.Path
}

// withPlainModel returns a URL without two kinds of text that do not change the endpoint, however a server reads them.
// One is a second slash at the start of the path: clients add it if their base URL ends with a slash. The other kind
// are escaped slashes and colons in the name of a model after /model/, which is an ARN at Bedrock.
func withPlainModel(u *url.URL) *url.URL {
	path := u.EscapedPath()
	if strings.HasPrefix(path, "//") && !strings.HasPrefix(path, "//chat/") { // chat may be read as a host
		path = path[1:]
	}
	if start, rest, ok := strings.Cut(path, "/model/"); ok && start == "" {
		model, end, _ := strings.Cut(rest, "/")
		name := strings.NewReplacer("%2F", "/", "%2f", "/", "%3A", ":", "%3a", ":").Replace(model)
		if !slices.ContainsFunc(strings.Split(name, "/"), func(s string) bool { return s == "" || strings.Trim(s, ".") == "" }) {
			path = "/model/" + strings.ReplaceAll(name, "/", "-") + "/" + end
		}
	}
	plain, err := url.ParseRequestURI(path)
	if err != nil {
		return u
	}
	return plain
}

// isEmbeddingPath reports whether a path is for embeddings. Such requests have no output.
func isEmbeddingPath(path string) bool {
	for _, end := range []string{"/embeddings", "/api/embed", ":embedContent", ":batchEmbedContents"} {
		if strings.HasSuffix(path, end) {
			return true
		}
	}
	return false
}

// Read reads the body of a request for the rules that apply to it. The caller must use the returned request from then
// on, because its context has the result. At the end of the request, it must call the returned function. If no meter
// applies, Read returns the request unchanged.
//
// If the body breaks off, the next reader of the body gets the error. Read itself returns only [ErrNoRoom] and
// [ErrShare].
func (ms *Meters) Read(r *http.Request) (_ *http.Request, done func(), err error) {
	var matching []*Meter
	maxBody, readsAnswer := 0, false
	for _, m := range ms.list {
		if !m.match(r) {
			continue
		}
		matching, readsAnswer = append(matching, m), readsAnswer || m.fields != nil
		if m.readsRequest() {
			maxBody = max(maxBody, m.tokens.MaxBody)
		}
	}
	if matching == nil {
		return r, func() {}, nil
	}
	q := &Request{Context: r.Context(), API: matching[0].tokens.API, meters: matching, certainPath: certainPath(r)}
	q.isEmbedding = isEmbeddingPath(q.certainPath)
	if q.API == rulefile.APIAuto || q.API == "" {
		q.API = apiOf(r.URL.Path)
	}
	if q.pathModel, q.hasPathModel = modelIn(q.API, r.URL.Path); !paths.HasOneReading(r) {
		q.pathModel, q.hasPathModel = "", true
	}
	r = r.WithContext(q)
	if readsAnswer {
		r.Header["Accept-Encoding"] = []string{"identity"}
	}
	q.memory = claim{room: &ms.states.room, clientOf: func() netip.Prefix { return ms.client(r) }}
	done = func() { q.memory.give(q.memory.bytes) }
	if r.Body == nil || r.Body == http.NoBody || maxBody == 0 {
		return r, done, nil
	}
	if err := q.read(r, maxBody); err != nil {
		done()
		return r, func() {}, err
	}
	return r, done, nil
}

func (m *Meter) readsRequest() bool {
	return m.tokens.From == (rulefile.CostPlace{})
}

// read reads at most maxBody bytes of the body. After that, a reader of the body still gets all its bytes.
func (q *Request) read(r *http.Request, maxBody int) error {
	text, end, err := q.memory.read(r.Body, r.ContentLength, maxBody)
	if err != nil {
		return err
	}
	allRead := errors.Is(end, io.EOF)
	plain, allInflated, err := q.decompress(text, encodingOf(r.Header), maxBody)
	if errors.Is(err, ErrNoRoom) || errors.Is(err, ErrShare) {
		return err
	}
	size := int64(len(plain))
	if err != nil {
		plain, size = text, max(int64(len(text)), r.ContentLength) // the length is used, because the text is unknown
	} else if !allInflated || !allRead {
		size = max(size, r.ContentLength)
	}
	bounds := boundsOf(q.API, q.certainPath)
	q.body, q.isComplete = usage.ReadRequest(plain, size, bounds), allRead && allInflated && err == nil
	if allRead && (allInflated || err != nil) && q.wantsUsage(r) {
		if text, plain, err = q.askForUsage(r, text, plain, err == nil); err != nil {
			return err
		}
	}
	if q.isComplete && !isSigned(r.Header) && slices.ContainsFunc(q.meters, (*Meter).Clamps) {
		if q.editor = newBoundEditor(plain, bounds, q.body.Cap() > 0); q.editor != nil {
			spare := sizeOf(q.editor.size())
			if err := q.memory.take(spare); err != nil {
				return err
			}
			q.memory.spare = spare
		}
	}
	if q.editor == nil && isSeparate(text, plain) {
		q.memory.give(sizeOf(cap(plain)))
	}
	rest := io.Reader(r.Body)
	if end != nil {
		rest = errReader{end}
	}
	r.Body = &readBody{io.MultiReader(bytes.NewReader(text), rest), r.Body}
	return nil
}

// inflating has an element for each body being decompressed. It bounds their number, because a decompressor may need 16
// MiB.
var inflating = make(chan struct{}, 8)

func encodingOf(h http.Header) string {
	var encodings []string
	for _, e := range strings.Split(strings.Join(h["Content-Encoding"], ","), ",") {
		if e = strings.ToLower(strings.TrimSpace(e)); e != "" && e != "identity" {
			encodings = append(encodings, e)
		}
	}
	return strings.Join(encodings, ",")
}

// decompress returns at most maxLen bytes of the decompressed body, and whether they are the complete body. Its error
// is the error of claim.take, or says that the body does not have the given encoding.
func (q *Request) decompress(text []byte, encoding string, maxLen int) (plain []byte, complete bool, err error) {
	if encoding == "" {
		return text, true, nil
	}
	inflating <- struct{}{}
	defer func() { <-inflating }()
	z, closeReader, err := usage.Decompressor(bytes.NewReader(text), encoding)
	if err != nil {
		return nil, false, err
	}
	defer closeReader()
	before := q.memory.bytes
	plain, end, err := q.memory.read(z, -1, maxLen+1)
	switch {
	case err != nil:
		return nil, false, err
	case end != nil && !errors.Is(end, io.EOF):
		q.memory.give(q.memory.bytes - before)
		return nil, false, end
	}
	return plain[:min(len(plain), maxLen)], len(plain) <= maxLen, nil
}

// A readBody is a body from which some bytes were read. It returns them again.
type readBody struct {
	io.Reader
	closer io.Closer
}

// Close implements [io.Closer].
func (b *readBody) Close() error { return b.closer.Close() }

// errReader is a reader that only returns an error. It is the end of a body that broke off.
type errReader struct{ err error }

func (f errReader) Read([]byte) (int, error) { return 0, f.err }
