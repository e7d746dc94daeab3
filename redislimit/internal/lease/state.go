package lease

// state is the content of a lease's word: see the package comment.
type state uint64

const (
	// MaxTokens is the largest number of tokens that a lease can have in hand.
	MaxTokens = 1<<24 - 1
	// MaxDebt is the largest overdraft.
	MaxDebt = 1<<14 - 1

	debtShift  = 24
	renewing   = state(1) << 39
	healthy    = state(1) << 40
	retired    = state(1) << 41
	generation = state(1) << 42
)

func (w state) tokens() uint64 { return uint64(w) & MaxTokens }
func (w state) debt() uint64   { return uint64(w) >> debtShift & MaxDebt }

// with returns the state with these numbers of tokens and debt, which must be in range.
func (w state) with(tokens, debt uint64) state {
	return w&^(MaxTokens|MaxDebt<<debtShift) | state(tokens) | state(debt)<<debtShift
}
