package usage

// MaxField is the largest number in a field of a usage. A larger number is ignored, because no request has more than
// ten million tokens.
const MaxField = 10_000_000

type field uint8

const (
	none        field = iota
	fInput            // tokens of the prompt
	fOutput           // tokens of the answer
	fTotal            //
	fCachedIn         // read from a cache, and part of the input
	fCacheRead        // read from a cache; added to the input by some APIs, part of it in others
	fCacheWrite       //
	fThoughts         // output in addition to fOutput
	fToolInput        // input in addition to fInput
	fCost             // the number at the path of [Path]
	numCounts         // number of the fields above

	fUsage  // an object with these fields
	fMeta   // Gemini's usage object, which every event has
	fText   // text that the model has written
	fType   // type of an event
	fDone   // true if the answer has ended
	fFinish // the reason why an answer has ended
	fChoice // an item of an event's content
)

// Usage is the cost of a request, as far as it is known.
type Usage struct {
	Input      uint64 // tokens of the prompt, including cached tokens
	Cached     uint64 // part of Input that was read from a cache
	CacheWrite uint64 // part of Input that was written to a cache
	Output     uint64 // tokens of the answer, including thoughts
	Total      uint64
	Cost       uint64 // the number at the path of [Path]
	NoInput    bool   // the input is unknown, for example in Ollama if the prompt was cached
}

// raw has a number for each field of the usage: the last valid number that the answer has reported.
type raw struct {
	present uint16
	invalid uint16 // a bit for each field whose last value is not a count
	n       [numCounts]uint64
}

func (r *raw) set(f field, n uint64) {
	r.present, r.invalid, r.n[f] = r.present|1<<f, r.invalid&^(1<<f), n
}

func (r *raw) has(f field) bool { return r.present>>f&1 != 0 }

func (r *raw) isEmpty() bool { return r.present&(1<<fInput|1<<fOutput|1<<fTotal|1<<fCost) == 0 }

// isComplete reports whether the numbers give the complete cost. For that, no field that adds to the cost may have an
// invalid value. An invalid input does not matter, because the input is then estimated. An invalid total does not
// matter if there is an output.
func (r *raw) isComplete() bool {
	costFields := uint16(1<<fOutput | 1<<fThoughts | 1<<fCacheRead | 1<<fCacheWrite | 1<<fToolInput)
	switch {
	case r.has(fCost):
		costFields = 1 << fCost
	case !r.has(fOutput):
		costFields |= 1 << fTotal
	}
	return !r.isEmpty() && r.invalid&costFields == 0
}

// usage makes a Usage from the numbers. It must do so for any API. For OpenAI and Gemini, the input includes cached
// tokens, and for Anthropic it does not. For Bedrock, this depends on the model, and the total shows it.
func (r *raw) usage() Usage {
	u := Usage{Input: r.n[fInput], Output: r.n[fOutput] + r.n[fThoughts], Cost: r.n[fCost]}
	u.NoInput = !r.has(fInput) && !r.has(fTotal)
	cached := r.n[fCacheRead] + r.n[fCacheWrite]
	if included := r.has(fTotal) && r.n[fTotal] == u.Input+u.Output && cached <= u.Input; !included {
		u.Input += cached
	}
	u.Input += r.n[fToolInput]
	u.Cached = min(r.n[fCacheRead]+r.n[fCachedIn], u.Input)
	u.CacheWrite = min(r.n[fCacheWrite], u.Input-u.Cached)
	u.Total = max(r.n[fTotal], u.Input+u.Output)
	return u
}

// number parses a whole number of at most [MaxField], or returns false.
func number(text []byte) (n uint64, ok bool) {
	if len(text) == 0 || len(text) > 8 {
		return 0, false
	}
	for _, c := range text {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + uint64(c-'0')
	}
	return n, n <= MaxField
}

// Number parses a whole number from 0 to [MaxField], for example from a header field. For any other text, it returns
// false.
func Number(text string) (uint64, bool) { return number([]byte(text)) }
