package resp

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// A protocolError is a mistake in a client's data. Later data of the connection cannot be understood.
type protocolError struct{ message string }

// Error implements error.
func (e *protocolError) Error() string { return "Protocol error: " + e.message }

func broken(format string, args ...any) error { return &protocolError{fmt.Sprintf(format, args...)} }

// A parser finds commands in a client's bytes. A command is an array of bulk strings, or an inline command, which is a
// line of words.
type parser struct {
	args [][]byte // the arguments of the last command, which are parts of the text
}

// next parses the first command of text and returns its length. If the end of the command has not arrived, the length
// is 0. A command without arguments, such as an empty line, is ignored.
func (p *parser) next(text []byte, most bounds) (length int, err error) {
	p.args = p.args[:0]
	if len(text) == 0 {
		return 0, nil
	}
	if text[0] != '*' {
		return p.inline(text, most)
	}
	count, at, err := number(text, 1, "multibulk length")
	if err != nil || at == 0 {
		return 0, err
	}
	if count > int64(most.arguments) {
		return 0, broken("invalid multibulk length %d: want at most %d", count, most.arguments)
	}
	for range count {
		if at == len(text) {
			return p.unfinished(text, most)
		}
		if text[at] != '$' {
			return 0, broken("expected '$', got %q", text[at])
		}
		size, begin, err := number(text, at+1, "bulk length")
		if err != nil {
			return 0, err
		}
		if begin == 0 {
			return p.unfinished(text, most)
		}
		if size < 0 || size > int64(most.command) {
			return 0, broken("invalid bulk length %d: want 0 to %d", size, most.command)
		}
		end := begin + int(size)
		if end+2 > most.command {
			return 0, tooLong(most)
		}
		if end+2 > len(text) {
			return p.unfinished(text, most)
		}
		if text[end] != '\r' || text[end+1] != '\n' {
			return 0, broken("expected CRLF after a bulk string of %d bytes", size)
		}
		p.args = append(p.args, text[begin:end])
		at = end + 2
	}
	return at, nil
}

// unfinished returns 0 for a command whose end has not arrived. If the command is already too long, it returns an
// error.
func (p *parser) unfinished(text []byte, most bounds) (int, error) {
	p.args = p.args[:0]
	if len(text) >= most.command {
		return 0, tooLong(most)
	}
	return 0, nil
}

func tooLong(most bounds) error {
	return broken("a command of more than %d bytes", most.command)
}

// number parses digits and the line end after them. The digits begin at the index at. The result next is the index
// after the line end, or 0 if the line end has not arrived.
func number(text []byte, at int, what string) (n int64, next int, err error) {
	line := text[at:min(len(text), at+lineMax)]
	end := bytes.IndexByte(line, '\n')
	if end < 0 {
		if len(line) == lineMax {
			return 0, 0, broken("too big %s: a line of more than %d bytes", what, lineMax)
		}
		return 0, 0, nil
	}
	next = at + end + 1
	if line = line[:end]; end == 0 || line[end-1] != '\r' {
		return 0, 0, broken("invalid %s: a line ends with CRLF", what)
	}
	n, ok := integer(line[:end-1])
	if !ok {
		return 0, 0, broken("invalid %s %q", what, line[:end-1])
	}
	return n, next, nil
}

// inline parses the words of a line. A person may have typed the line.
func (p *parser) inline(text []byte, most bounds) (int, error) {
	end := bytes.IndexByte(text, '\n')
	if end < 0 || end >= most.command {
		if len(text) >= most.command {
			return 0, broken("too big inline request: want at most %d bytes", most.command)
		}
		return 0, nil
	}
	line := text[:end]
	for at := 0; at < len(line); {
		if isSpace(line[at]) {
			at++
			continue
		}
		if len(p.args) == most.arguments {
			return 0, broken("an inline command of more than %d words", most.arguments)
		}
		word, next, err := word(line, at)
		if err != nil {
			return 0, err
		}
		p.args, at = append(p.args, word), next
	}
	return end + 1, nil
}

// word parses the word that begins at the index at. It writes the word over the text, which is never shorter than the
// word. Parts of a word may be in quotes: "..." has the escapes of C and \xHH, and '...' has only \'.
func word(line []byte, at int) (word []byte, next int, err error) {
	to := at
	begin := to
	for at < len(line) && !isSpace(line[at]) {
		switch quote := line[at]; quote {
		case 0:
			return nil, 0, broken("an inline command has no zero bytes: use a client")
		case '"', '\'':
			if to, at, err = quoted(line, to, at+1, quote); err != nil {
				return nil, 0, err
			}
		default:
			line[to] = quote
			to, at = to+1, at+1
		}
	}
	return line[begin:to], at, nil
}

// quoted copies a text up to the closing quote. The text begins at the index at, and the copy at the index to. The
// results are the end of the copy and the index after the quote. A space or the end of the line must follow the quote.
func quoted(line []byte, to, at int, quote byte) (end, next int, err error) {
	for at < len(line) && line[at] != quote {
		c, n := line[at], 1
		if c == '\\' && at+1 < len(line) {
			c, n = escaped(line[at:], quote)
		}
		line[to] = c
		to, at = to+1, at+n
	}
	switch {
	case at == len(line):
		return 0, 0, broken("unbalanced quotes in an inline command")
	case at+1 < len(line) && !isSpace(line[at+1]):
		return 0, 0, broken("no space behind a quote of an inline command")
	}
	return to, at + 1, nil
}

// escaped returns the character that an escape means, and the length of the escape.
func escaped(text []byte, quote byte) (c byte, n int) {
	switch c = text[1]; {
	case quote == '\'' && c != '\'':
		return '\\', 1
	case quote == '\'':
		return c, 2
	case c == 'x' && len(text) > 3:
		if value, err := strconv.ParseUint(string(text[2:4]), 16, 8); err == nil {
			return byte(value), 4
		}
	}
	if at := strings.IndexByte("nrtba", c); at >= 0 {
		c = "\n\r\t\b\a"[at]
	}
	return c, 2
}

func isSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }
