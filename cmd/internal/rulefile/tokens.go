package rulefile

import (
	"cmp"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"
	"golang.org/x/net/http/httpguts"

	"github.com/weir-go/weir/cmd/internal/usage"
	"github.com/weir-go/weir/cmd/internal/yamlfile"
	"github.com/weir-go/weir/limits/spec"
)

// Tokens has the settings of a rule whose costs are reported in answers. Until the answer reports the cost, the tokens
// of the Estimate are held.
type Tokens struct {
	API           API
	Count         Count
	Scale         uint64 // how many units of Count are one token of the limit; 0 means 1
	Estimate      Estimate
	DefaultOutput uint64 // tokens of an answer, if the request does not bound it
	Abort         Abort
	Unknown       Unknown
	Clamp         bool // whether the bounds of requests are lowered to the number of tokens that are left
	AskUsage      bool
	MaxBody       int
	Fields        TokenFields
	From          CostPlace // place of the cost, for an API other than a model's; zero for none
}

// API is the form of requests and refusals. In answers, weir reads the usage of every API.
type API string

const (
	APIAuto      API = "auto" // determined by the path of the request
	APIOpenAI    API = "openai"
	APIAnthropic API = "anthropic"
	APIGemini    API = "gemini"
	APIOllama    API = "ollama"
	APIBedrock   API = "bedrock"
)

// Count says which tokens are counted, and with which weights.
type Count struct {
	Word    string // total, input or output; "" for weights
	Weights usage.Weights
	Models  []ModelWeights // weights of certain models, the longest names first
}

// ModelWeights has the weights of the model Name. If Prefix is set, they apply to all models whose names begin with
// Name.
type ModelWeights struct {
	Name    string
	Prefix  bool
	Weights usage.Weights
}

// WeightsOf returns the weights of a model. If the model is not listed, they are the rule's own weights. Letter case
// does not matter, because some servers ignore it.
func (c *Count) WeightsOf(model string) usage.Weights {
	for _, m := range c.Models {
		if len(model) >= len(m.Name) && strings.EqualFold(model[:len(m.Name)], m.Name) && (m.Prefix || len(model) == len(m.Name)) {
			return m.Weights
		}
	}
	return c.Weights
}

// Estimate says how many tokens are held for a request.
type Estimate struct {
	Kind EstimateKind
	N    uint64 // number, for EstimateFixed
}

// EstimateKind says how the estimate is made.
type EstimateKind string

const (
	EstimateWorst   EstimateKind = "worst"
	EstimateLearned EstimateKind = "learned"
	EstimateNone    EstimateKind = "none"
	EstimateFixed   EstimateKind = "a number"
)

// Abort says what a request costs if its answer breaks off before it has reported a usage.
type Abort struct {
	Kind  AbortKind
	Drain time.Duration // for AbortDrain: how long the rest of the answer is read after the client has gone
}

// AbortKind says what a request costs if its answer breaks off.
type AbortKind string

const (
	AbortKeep      AbortKind = "keep"
	AbortDelivered AbortKind = "delivered"
	AbortDrain     AbortKind = "drain"
)

// Unknown says what a request costs if its complete answer has no usage.
type Unknown string

const (
	UnknownKeep      Unknown = "keep"
	UnknownDelivered Unknown = "delivered"
	UnknownFree      Unknown = "free"
)

// TokenFields says which header fields report the tokens left. Each API has its own fields.
type TokenFields string

const (
	TokenFieldsNone      TokenFields = "none"
	TokenFieldsOpenAI    TokenFields = "openai"
	TokenFieldsAnthropic TokenFields = "anthropic"
)

const (
	defaultOutput = 1024
	minDrain      = time.Second
	maxDrain      = 5 * time.Minute
	maxWeight     = 1_000_000
	maxScale      = 1_000_000
)

// Unit returns the unit of the limit that answers report. It is "" if a token of the limit is not a token of a model.
func (t *Tokens) Unit() string {
	if t.From == (CostPlace{}) && t.Count.Word != "" && t.Scale <= 1 {
		return "tokens"
	}
	return ""
}

func (t *Tokens) section() section {
	return section{
		name: "tokens", entries: []entry{
			newEntry("api", words(APIAuto, APIOpenAI, APIAnthropic, APIGemini, APIOllama, APIBedrock), &t.API, "auto",
				"the API of the upstream, which determines the form of refusals and which requests are free; `auto` finds it by the path"),
			newEntry("count", count, &t.Count, "total",
				"`total`, `input`, `output`, or a mapping with the weights of `input`, `cached`, `cache_write` and `output`, such as "+
					"`{input: 3, output: 15}` in millionths of a dollar, and with other weights for some `models`").
				withRange("weights 0 to 1000000, three decimals"),
			newEntry("scale", integer[uint64](1, maxScale), &t.Scale, "1",
				"one token of the limit stands for this many units of `count`; the cost of a request is rounded up"),
			newEntry("estimate", estimate, &t.Estimate, "worst",
				"how many tokens are held until the answer reports its cost: `worst`, `learned`, a number, or `none` for one token").
				withRange("a number 1 to 4294967296"),
			newEntry("default_output", integer[uint64](1, usage.MaxField), &t.DefaultOutput, strconv.Itoa(defaultOutput),
				"the assumed tokens of an answer if the request has no bound"),
			newEntry("abort", abort, &t.Abort, "keep",
				"what a request costs if its client leaves or its answer breaks off: what is held (`keep`), its estimated input and "+
					"the delivered output (`delivered`), or the usage at the end of the answer, which is read for up to this time (`drain 30s`)").
				withRange("drain 1s to 5m"),
			newEntry("unknown", words(UnknownKeep, UnknownDelivered, UnknownFree), &t.Unknown, "keep",
				"what a request costs if its answer ends without a usage: `keep` and `delivered` as for `abort`, or nothing (`free`)"),
			newEntry("clamp", boolean, &t.Clamp, "",
				"lower a request's bound for its answer, such as max_tokens, to what is left. A request is then refused only if its prompt "+
					"needs more than that. A request without a bound gets one if less than `default_output` is left").withRange("estimates `worst` and `learned`"),
			newEntry("ask_usage", boolean, &t.AskUsage, "",
				"add stream_options.include_usage to requests for a stream of OpenAI's API that do not have it, and hide the additional event"),
			newEntry("max_body", size(1<<10, 64<<20), &t.MaxBody, "8MiB",
				"how much of a request's body is read before the request is passed on; the length of the rest counts as text"),
			newEntry("fields", words(TokenFieldsNone, TokenFieldsOpenAI, TokenFieldsAnthropic), &t.Fields, "none",
				"header fields of answers in addition to those of `headers`: `openai`: x-ratelimit-limit-tokens, -remaining-tokens and "+
					"-reset-tokens; `anthropic`: anthropic-ratelimit-tokens-limit, -remaining and -reset"),
		},
	}
}

// count describes the value that says which tokens are counted, and with which weights.
var count = kind[Count]{
	read: func(d *decoder, n *yaml.Node, keyName string, dst *Count) {
		if yamlfile.Target(n).Kind != yaml.MappingNode {
			words := map[string]usage.Weights{"total": usage.Total, "input": usage.InputOnly, "output": usage.OutputOnly}
			text, ok := d.text(n, keyName)
			weights, isKnown := words[text]
			if *dst = (Count{Word: text, Weights: weights}); ok && !isKnown {
				d.Fail(n, "unknown count %s%s", yamlfile.Quote(text), didYouMean(text, []string{"total", "input", "output"}))
			}
			return
		}
		*dst = Count{}
		before := len(d.Errors)
		s := dst.section()
		if s.read(d, n); dst.Weights == (usage.Weights{}) && len(d.Errors) == before {
			d.Fail(n, "count: every weight is 0: want one above 0")
		}
	},
	schema: func() schema {
		s := new(Count).section()
		return anyOf(schema{"enum": []string{"total", "input", "output"}}, s.schema())
	},
}

func (c *Count) section() section {
	return section{name: "count", minProperties: 1, entries: append(weightEntries(&c.Weights),
		newEntry("models", mapOf(mapping((*ModelWeights).section), readModels), &c.Models, "",
			"the weights of some models, by name, or by the start of a name and a `*`. If several fit, the longest "+
				"applies. A request that names another model, or several models, has the weights of the rule"),
	)}
}

func weightEntries(w *usage.Weights) []entry {
	return []entry{
		newEntry("input", weight, &w.Input, "0", "the weight of a prompt token that is in no cache"),
		newEntry("cached", weight, &w.Cached, "0", "the weight of a prompt token that was read from a cache"),
		newEntry("cache_write", weight, &w.CacheWrite, "0", "the weight of a prompt token that was written to a cache"),
		newEntry("output", weight, &w.Output, "0", "the weight of a token of the answer"),
	}
}

func readModels(d *decoder, n *yaml.Node, keyName string, dst *[]ModelWeights) {
	d.nonEmptyPairs(n, keyName, func(key, value *yaml.Node) {
		name, prefix := strings.CutSuffix(yamlfile.Target(key).Value, "*")
		m := ModelWeights{Name: name, Prefix: prefix}
		if name == "" || strings.Contains(name, "*") || len(name) > usage.MaxModel {
			d.Fail(key, "%s: %s: want the name of a model of 1 to %d bytes, or its beginning and a *", keyName,
				yamlfile.Quote(yamlfile.Target(key).Value), usage.MaxModel)
		}
		s, before := m.section(), len(d.Errors)
		if s.read(d, value); m.Weights == (usage.Weights{}) && len(d.Errors) == before {
			d.Fail(value, "model %s: every weight is 0: want one above 0", yamlfile.Quote(m.Name))
		}
		*dst = append(*dst, m)
	})
	slices.SortStableFunc(*dst, func(a, b ModelWeights) int { // an exact name comes before the same name as a prefix
		return cmp.Or(cmp.Compare(len(b.Name), len(a.Name)), map[bool]int{false: 0, true: 1}[a.Prefix]-map[bool]int{false: 0, true: 1}[b.Prefix])
	})
}

func (m *ModelWeights) section() section {
	return section{name: fmt.Sprintf("model %q", m.Name), minProperties: 1, entries: weightEntries(&m.Weights)}
}

// weight describes a number with at most three decimals. It is stored in thousandths.
var weight = func() kind[uint64] {
	k := scalar(schema{"type": "number", "minimum": 0, "maximum": maxWeight}, func(d *decoder, n *yaml.Node, keyName, s string) uint64 {
		f, err := strconv.ParseFloat(s, 64)
		thousandths := math.Round(f * 1000)
		if err != nil || !(f >= 0 && f <= maxWeight) || math.Abs(f*1000-thousandths) > 1e-6 {
			d.Fail(n, "%s: want a number from 0 to %d with at most three decimals, got %s", keyName, maxWeight, describeNode(yamlfile.Target(n)))
			return 0
		}
		return uint64(thousandths)
	})
	k.rangeText = fmt.Sprintf("0 to %d, three decimals", maxWeight)
	return k
}()

var estimate = scalar(anyOf(schema{"enum": []string{"worst", "learned", "none"}},
	schema{"type": "integer", "minimum": 1, "maximum": uint64(spec.MaxBurst)}),
	func(d *decoder, n *yaml.Node, keyName, s string) Estimate {
		switch kind := EstimateKind(s); kind {
		case EstimateWorst, EstimateLearned, EstimateNone:
			return Estimate{Kind: kind}
		}
		v, err := strconv.ParseUint(s, 10, 64)
		if err != nil || v < 1 || v > spec.MaxBurst {
			d.Fail(n, "%s: want worst, learned, none or a number from 1 to %d, got %s", keyName, uint64(spec.MaxBurst), yamlfile.Quote(s))
		}
		return Estimate{EstimateFixed, v}
	})

var abort = scalar(anyOf(schema{"enum": []string{"keep", "delivered"}}, pattern("drain 30s", `^drain +([0-9.]+[a-zµμ]+)+$`)),
	func(d *decoder, n *yaml.Node, keyName, s string) Abort {
		word, rest, _ := strings.Cut(s, " ")
		switch kind := AbortKind(word); {
		case kind == AbortKeep && rest == "", kind == AbortDelivered && rest == "":
			return Abort{Kind: kind}
		case kind == AbortDrain:
			drain, err := time.ParseDuration(strings.TrimSpace(rest))
			if err != nil || drain < minDrain || drain > maxDrain {
				d.Fail(n, "%s: want drain with %v to %v, such as drain 30s, got %s", keyName, shortDuration(minDrain), shortDuration(maxDrain), yamlfile.Quote(s))
			}
			return Abort{kind, drain}
		}
		d.Fail(n, "%s: want keep, delivered or drain 30s, got %s", keyName, yamlfile.Quote(s))
		return Abort{}
	})

// CostPlace says where in an answer the cost is.
type CostPlace struct {
	Kind PlaceKind
	Name string // name of the header, or path in the body
}

// PlaceKind is a part of an answer.
type PlaceKind string

const (
	InJSON    PlaceKind = "json"
	InHeader  PlaceKind = "header"
	InTrailer PlaceKind = "trailer"
)

var costFrom = scalar(pattern("json:usage.total, header:X-Cost or trailer:X-Cost", "^(json|header|trailer):.+$"),
	func(d *decoder, n *yaml.Node, keyName, s string) CostPlace {
		kind, name, _ := strings.Cut(s, ":")
		f := CostPlace{PlaceKind(kind), name}
		switch f.Kind {
		case InJSON:
			if _, err := usage.Path(name); err != nil {
				d.Fail(n, "%s: %v", keyName, err)
			}
		case InHeader, InTrailer:
			f.Name = http.CanonicalHeaderKey(name)
			if !httpguts.ValidHeaderFieldName(name) {
				d.Fail(n, "%s: %s is not the name of an HTTP header", keyName, yamlfile.Quote(name))
			}
		default:
			d.Fail(n, "%s: want json:, header: or trailer: with a place in the answer, such as json:usage.total, got %s", keyName, yamlfile.Quote(s))
		}
		return f
	})

// String returns the place as in a file.
func (f CostPlace) String() string { return string(f.Kind) + ":" + f.Name }

func (t *Tokens) describe() string {
	if t == nil {
		return ""
	}
	if t.From != (CostPlace{}) {
		return fmt.Sprintf("%d held, then what %v of the answer says", t.Estimate.N, t.From)
	}
	count := t.Count.Word
	if count == "" {
		count = "weighted"
	}
	if t.Scale > 1 {
		count = fmt.Sprintf("%d %s", t.Scale, count)
	}
	estimate := string(t.Estimate.Kind)
	if t.Estimate.Kind == EstimateFixed {
		estimate = strconv.FormatUint(t.Estimate.N, 10)
	}
	parts := []string{count + " tokens of the answer's usage", "estimate " + estimate, "abort " + string(t.Abort.Kind)}
	if t.Abort.Kind == AbortDrain {
		parts[2] += " " + shortDuration(t.Abort.Drain)
	}
	parts = append(parts, "unknown "+string(t.Unknown))
	if t.Clamp {
		parts = append(parts, "answers bounded by what is left")
	}
	return strings.Join(parts, ", ")
}

// checkTokens refuses keys that a rule cannot have if its cost is known only after the request.
func (t *ruleText) checkTokens(d *decoder) {
	key := "tokens"
	switch {
	case t.Tokens != nil:
	case t.Cost.From != CostPlace{}:
		key = "cost"
		t.Tokens = &Tokens{
			Estimate: Estimate{EstimateFixed, t.Cost.Estimate}, Abort: Abort{Kind: AbortKeep}, Unknown: UnknownKeep, From: t.Cost.From,
		}
	default:
		return
	}
	for _, other := range []string{"cost", "max_wait", "refund_status", "spread", "concurrency"} {
		if other != key && t.nodes[other] != nil {
			d.Fail(t.nodes[other], "%s: not with a cost that comes from the answer (%s): write a separate rule for it, or leave this out", other, key)
		}
	}
	d.answerCostNode = cmp.Or(d.answerCostNode, t.nodes[key])
	t.checkClamp(d)
}

// checkClamp refuses a clamp without an effect.
func (t *ruleText) checkClamp(d *decoder) {
	switch {
	case !t.Tokens.Clamp:
	case t.Tokens.Estimate.Kind != EstimateWorst && t.Tokens.Estimate.Kind != EstimateLearned:
		d.Fail(t.nodes["tokens"], "clamp: it needs the estimate worst or learned, which read the prompt: leave clamp out, or the estimate")
	case t.Tokens.Count.Weights != usage.Total && t.Tokens.Count.Weights.Output == 0:
		d.Fail(t.nodes["tokens"], "clamp: answers do not count here, so a shorter one would not cost less: leave clamp out")
	}
}

// checkSettled refuses rules with costs from answers if weir does not see the answers.
func (d *decoder) checkSettled(f *File) {
	if d.answerCostNode != nil && f.Decide != nil {
		d.Fail(d.answerCostNode, "the cost comes from the answer, but a proxy that asks at decide does not pass answers "+
			"through weir: leave out decide, or write a cost that comes from the request")
	}
}
