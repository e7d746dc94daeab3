package usage

// Memory is the most bytes that a [Scanner] uses, whatever is written to it. It does not include the windows that
// decompression needs.
const Memory = 64 << 10

// A Scanner reads the usage in an answer that is written to it. It is not safe for concurrent use.
type Scanner struct {
	frames      frames
	shape       shape
	doc         document
	raw         raw
	event       event
	text        uint64 // number of bytes that the model has written
	badFields   uint64 // number of fields whose value is not a count
	final       bool
	done        bool // the answer has reported its end
	stopAtEvent bool // Step stops at the end of an event
}

type event struct {
	hasUsage       bool // it has a number of a usage
	hasUsageObject bool // it has a usage in OpenAI's form
	hasChoices     bool // it has something else for the client
	hasFinish      bool
	isDone         bool
	isMetadata     bool // it is the frame that ends an answer of Amazon's event stream and has its usage
	kind           terminal
}

type terminal uint8

const (
	untyped       terminal = iota
	otherType              // the event's type does not end an answer
	endsWithUsage          // the event ends the answer if it has a usage
	endsAnswer             // the event ends the answer
)

// terminals has the types of events that may end an answer.
var terminals = map[string]terminal{
	"message_delta": endsWithUsage, "response.completed": endsAnswer, "response.incomplete": endsAnswer,
	"response.failed": endsAnswer,
}

// NewScanner returns a scanner for an uncompressed answer. It needs the Content-Type of the answer.
func NewScanner(contentType string, f *Fields) *Scanner {
	s := &Scanner{}
	s.doc.sink, s.doc.root = s, f.root
	s.doc.reset()
	s.frames.begin(contentType)
	return s
}

// Write reads a piece of the answer.
func (s *Scanner) Write(p []byte) {
	s.stopAtEvent = false
	for len(p) > 0 {
		n, _ := s.frames.step(s, p)
		p = p[n:]
	}
}

// Step reads bytes from the start of a piece, which must not be empty, and returns how many it has read. It usually
// stops at the end of an event. It may pass the end of events that have only text. The result event reports whether
// Step has stopped at the end of an event.
func (s *Scanner) Step(p []byte) (n int, event bool) {
	s.stopAtEvent = true
	return s.frames.step(s, p)
}

// End is called when the answer is complete. If the usage has the complete cost, it is then final.
func (s *Scanner) End() {
	s.frames.flushPending(s)
	s.doc.write([]byte{'\n'}) // ends a number
	s.endDocument()
	s.final = s.final || s.raw.isComplete()
}

// Usage returns the usage that was reported so far. The result known says whether the answer has reported any part of
// it. The result final says whether it is the usage at the end of the answer.
func (s *Scanner) Usage() (u Usage, known, final bool) {
	return s.raw.usage(), !s.raw.isEmpty(), s.final
}

// Ended reports whether the answer has announced its end. It may have done so without a usage.
func (s *Scanner) Ended() bool { return s.done }

// Text returns how many bytes the model has written so far.
func (s *Scanner) Text() uint64 {
	s.frames.flushPending(s)
	return s.text
}

// BadFields returns how many fields had a value that is not a whole number from 0 to [MaxField].
func (s *Scanner) BadFields() uint64 { return s.badFields }

// UsageOnly is called after [Scanner.Step]. It reports whether the document that has just ended has nothing but a
// usage. If a client has not asked for the usage, it does not need such a document.
func (s *Scanner) UsageOnly() bool { return s.frames.usageOnly }

// value implements sink.
func (s *Scanner) value(d *document, n *node, k kind, text []byte, size int) {
	if s.shape.learning && !d.isKeyAt(k) {
		s.shape.value(n, k, d.valueStart, d.valueEnd)
	}
	if n == nil {
		return
	}
	switch f := n.field; {
	case f == none:
	case f == fUsage:
		s.event.hasUsageObject = k == kindObject
	case f == fMeta:
	case f < numCounts:
		s.count(f, k, text)
	case f == fText:
		if k == kindString {
			s.text += uint64(size)
		}
	case f == fType && k == kindString:
		if s.event.kind = terminals[string(text)]; s.event.kind == untyped {
			s.event.kind = otherType
		}
	case f == fDone:
		s.event.isDone = k == kindLiteral && string(text) == "true"
	case f == fFinish:
		s.event.hasFinish = k == kindString
	case f == fChoice:
		s.event.hasChoices = true
	}
}

// count notes the number in a field. If a field has several numbers, the last valid one counts.
func (s *Scanner) count(f field, k kind, text []byte) {
	n, ok := number(text)
	switch {
	case k == kindLiteral && string(text) == "null" || k == kindObject || k == kindArray:
	case k != kindNumber || !ok:
		s.badFields++
		s.raw.invalid |= 1 << f
		s.shape.learning = false
	case s.final && n < s.raw.n[f]: // a second usage may be lower, but tokens that were settled are not given back
		s.event.hasUsage = true
	default:
		s.raw.set(f, n)
		s.event.hasUsage = true
	}
}

// documentDone implements sink.
func (s *Scanner) documentDone(d *document) {
	e := s.event
	if s.shape.learning {
		s.shape.end(e.hasUsage || e.hasUsageObject || e.hasFinish || e.isDone || e.kind > otherType, d.valueStart)
	}
	// This is the last chunk of an OpenAI stream.
	usageChunk := s.frames.framing == events && e.hasUsageObject && e.hasUsage && e.kind == untyped && !e.hasChoices
	if usageChunk || e.kind == endsAnswer || e.isDone || e.hasUsage && (e.kind == endsWithUsage || e.hasFinish || e.isMetadata) {
		s.final, s.done = s.final || s.raw.isComplete(), true
	}
	s.frames.usageOnly = usageChunk
	s.event = event{isMetadata: e.isMetadata}
}

// reset begins a new document. The previous document may be incomplete.
func (s *Scanner) reset() {
	s.shape.learning = false
	s.doc.reset()
	s.endDocument()
}

// endDocument ends a document. If the document is incomplete, its last number may be cut off, and other numbers may be
// missing.
func (s *Scanner) endDocument() {
	if s.event.hasUsage {
		s.raw.invalid |= 1<<fOutput | 1<<fCost
	}
	s.event = event{}
}
