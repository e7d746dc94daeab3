package spread

import "fmt"

// Widths of the fields of a [cell], from the lowest on.
const (
	tokenBits = 24
	kindBits  = 2

	tokenMask     = 1<<tokenBits - 1
	kindShift     = tokenBits
	exchangeShift = kindShift + kindBits
	kindMask      = 1<<kindBits - 1
)

// A kind says whether the tokens of a cell are in it, come from the bucket, or go back to the bucket.
type kind uint8

const (
	// ready: the tokens are in the cell, and any call may spend them.
	ready kind = iota
	// drawing: the tokens come from the bucket as soon as the exchange is made.
	drawing
	// returning: the tokens go back to the bucket as soon as the exchange is made.
	returning
)

// A cell is the content of a cell's word: see the package comment.
type cell uint64

func (c cell) tokens() uint64 { return uint64(c) & tokenMask }
func (c cell) kind() kind     { return kind(c >> kindShift & kindMask) }
func (c cell) parity() uint64 { return uint64(c>>exchangeShift) & 1 }

// canSpend reports whether n tokens, n >= 1, can be spent from the cell.
func (c cell) canSpend(n uint64) bool { return c.kind() == ready && n <= c.tokens() }

// spent returns the cell without n of its tokens. It must have them.
func (c cell) spent(n uint64) cell { return c - cell(n) }

// begun returns the ready cell c after an exchange of the given number of tokens has begun.
func (c cell) begun(k kind, tokens uint64) cell {
	return c>>exchangeShift<<exchangeShift + 1<<exchangeShift | cell(k)<<kindShift | cell(tokens)
}

func (c cell) settled() cell {
	if c.kind() == drawing {
		return c &^ (kindMask << kindShift)
	}
	return c.emptied()
}

// emptied returns the cell without tokens, after its draw was dropped or its tokens were returned.
func (c cell) emptied() cell { return c >> exchangeShift << exchangeShift }

func (c cell) String() string {
	return fmt.Sprintf("{%d %s #%d}", c.tokens(), [...]string{"ready", "drawing", "returning", "?"}[c.kind()], c>>exchangeShift)
}
