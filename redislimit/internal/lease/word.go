package lease

// word is a lease's state: see the package comment.
type word uint64

const (
	// MaxTokens is the most that a lease can have in hand.
	MaxTokens = 1<<24 - 1
	// MaxDebt is the largest overdraft.
	MaxDebt = 1<<14 - 1

	debtShift  = 24
	renewing   = word(1) << 39
	healthy    = word(1) << 40
	retired    = word(1) << 41
	generation = word(1) << 42
)

func (w word) tokens() uint64 { return uint64(w) & MaxTokens }
func (w word) debt() uint64   { return uint64(w) >> debtShift & MaxDebt }

// with returns the word with other numbers. Both are in range.
func (w word) with(tokens, debt uint64) word {
	return w&^(MaxTokens|MaxDebt<<debtShift) | word(tokens) | word(debt)<<debtShift
}
