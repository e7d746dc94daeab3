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

func protocolErrorf(format string, args ...any) error {
	return &protocolError{fmt.Sprintf(format, args...)}
}

// A parser finds commands in a client's bytes. A command is an array of bulk strings, or an inline command, which is a
// line of words.
type parser struct {
	args [][]byte // the arguments of the last command, which are parts of the text
}

// next parses the first command of text and returns its length. If the end of the command has not arrived, the length
// is 0. A command without arguments, such as an empty line, is ignored.
func (p *parser) next(text []byte, maxSize bounds) (length int, err error) {
	p.args = p.args[:0]
	if len(text) == 0 {
		return 0, nil
	}
	if text[0] != '*' {
		return p.parseInline(text, maxSize)
	}
	count, pos, err := parseNumber(text, 1, "multibulk length")
	if err != nil || pos == 0 {
		return 0, err
	}
	if count > int64(maxSize.arguments) {
		return 0, protocolErrorf("invalid multibulk length %d: want at most %d", count, maxSize.arguments)
	}
	for range count {
		if pos == len(text) {
			return p.unfinished(text, maxSize)
		}
		if text[pos] != '$' {
			return 0, protocolErrorf("expected '$', got %q", text[pos])
		}
		size, begin, err := parseNumber(text, pos+1, "bulk length")
		if err != nil {
			return 0, err
		}
		if begin == 0 {
			return p.unfinished(text, maxSize)
		}
		if size < 0 || size > int64(maxSize.command) {
			return 0, protocolErrorf("invalid bulk length %d: want 0 to %d", size, maxSize.command)
		}
		end := begin + int(size)
		if end+2 > maxSize.command {
			return 0, tooLong(maxSize)
		}
		if end+2 > len(text) {
			return p.unfinished(text, maxSize)
		}
		if text[end] != '\r' || text[end+1] != '\n' {
			return 0, protocolErrorf("expected CRLF after a bulk string of %d bytes", size)
		}
		p.args = append(p.args, text[begin:end])
		pos = end + 2
	}
	return pos, nil
}

// unfinished returns 0 for a command whose end has not arrived. If the command is already too long, it returns an
// error.
func (p *parser) unfinished(text []byte, maxSize bounds) (int, error) {
	p.args = p.args[:0]
	if len(text) >= maxSize.command {
		return 0, tooLong(maxSize)
	}
	return 0, nil
}

func tooLong(maxSize bounds) error {
	return protocolErrorf("a command of more than %d bytes", maxSize.command)
}

// parseNumber parses digits and the line end after them. The digits begin at the index start. The result next is the
// index after the line end, or 0 if the line end has not arrived.
func parseNumber(text []byte, start int, name string) (n int64, next int, err error) {
	line := text[start:min(len(text), start+maxNumberLine)]
	end := bytes.IndexByte(line, '\n')
	if end < 0 {
		if len(line) == maxNumberLine {
			return 0, 0, protocolErrorf("too big %s: a line of more than %d bytes", name, maxNumberLine)
		}
		return 0, 0, nil
	}
	next = start + end + 1
	if line = line[:end]; end == 0 || line[end-1] != '\r' {
		return 0, 0, protocolErrorf("invalid %s: a line ends with CRLF", name)
	}
	n, ok := parseInteger(line[:end-1])
	if !ok {
		return 0, 0, protocolErrorf("invalid %s %q", name, line[:end-1])
	}
	return n, next, nil
}

// parseInline parses the words of a line. A person may have typed the line.
func (p *parser) parseInline(text []byte, maxSize bounds) (int, error) {
	end := bytes.IndexByte(text, '\n')
	if end < 0 || end >= maxSize.command {
		if len(text) >= maxSize.command {
			return 0, protocolErrorf("too big inline request: want at most %d bytes", maxSize.command)
		}
		return 0, nil
	}
	line := text[:end]
	for pos := 0; pos < len(line); {
		if isSpace(line[pos]) {
			pos++
			continue
		}
		if len(p.args) == maxSize.arguments {
			return 0, protocolErrorf("an inline command of more than %d words", maxSize.arguments)
		}
		word, next, err := parseWord(line, pos)
		if err != nil {
			return 0, err
		}
		p.args, pos = append(p.args, word), next
	}
	return end + 1, nil
}

// parseWord parses the word that begins at the index src. It writes the word over the text, which is never shorter than
// the word. Parts of a word may be in quotes: "..." has the escapes of C and \xHH, and '...' has only \'.
func parseWord(line []byte, src int) (parseWord []byte, next int, err error) {
	dst := src
	start := dst
	for src < len(line) && !isSpace(line[src]) {
		switch c := line[src]; c {
		case 0:
			return nil, 0, protocolErrorf("an inline command has no zero bytes: use a client")
		case '"', '\'':
			if dst, src, err = parseQuoted(line, dst, src+1, c); err != nil {
				return nil, 0, err
			}
		default:
			line[dst] = c
			dst, src = dst+1, src+1
		}
	}
	return line[start:dst], src, nil
}

// parseQuoted copies a text up to the closing quote. The text begins at the index src, and the copy at the index dst.
// The results are the end of the copy and the index after the quote. A space or the end of the line must follow the
// quote.
func parseQuoted(line []byte, dst, src int, quote byte) (end, next int, err error) {
	for src < len(line) && line[src] != quote {
		c, n := line[src], 1
		if c == '\\' && src+1 < len(line) {
			c, n = parseEscape(line[src:], quote)
		}
		line[dst] = c
		dst, src = dst+1, src+n
	}
	switch {
	case src == len(line):
		return 0, 0, protocolErrorf("unbalanced quotes in an inline command")
	case src+1 < len(line) && !isSpace(line[src+1]):
		return 0, 0, protocolErrorf("no space behind a quote of an inline command")
	}
	return dst, src + 1, nil
}

// parseEscape returns the character that an escape means, and the length of the escape.
func parseEscape(text []byte, quote byte) (c byte, n int) {
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
	if i := strings.IndexByte("nrtba", c); i >= 0 {
		c = "\n\r\t\b\a"[i]
	}
	return c, 2
}

func isSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }
