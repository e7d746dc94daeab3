package rulefile

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"github.com/weir-go/weir/cmd/internal/yamlfile"
)

// MaxBytes is the size of the largest file that is read.
const MaxBytes = 1 << 20

// Load reads a rule file, and checks the files of certificates, passwords and tokens that it names. The error is
// [yamlfile.Errors], unless the rule file itself cannot be read.
func Load(path string) (*File, error) {
	text, err := read(path)
	if err != nil {
		return nil, err
	}
	f, d := parse(path, text)
	d.tryCertificates()
	d.tryPasswords(f)
	d.tryTokens(f)
	return f.fileOrErrors(d)
}

// Parse parses the text of a rule file. The parameter name is the name of the file in messages. Relative file names are
// relative to its directory. Parse reads no files. The error is [yamlfile.Errors].
func Parse(name string, text []byte) (*File, error) {
	f, d := parse(name, text)
	return f.fileOrErrors(d)
}

func (f *File) fileOrErrors(d *decoder) (*File, error) {
	if len(d.Errors) > 0 {
		return nil, d.Errors.Sorted()
	}
	return f, nil
}

// read returns the text of the file, up to one byte more than MaxBytes.
func read(path string) ([]byte, error) {
	file, err := os.Open(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("there is no file %s: give the path of a rule file", path)
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("no permission to read %s: run as a user who may, or change the file's mode", path)
	case err != nil:
		return nil, fmt.Errorf("cannot open %s: %w", path, err)
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil && info.IsDir() {
		return nil, fmt.Errorf("%s is a directory: name one rule file", path)
	}
	text, err := io.ReadAll(io.LimitReader(file, MaxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", path, err)
	}
	return text, nil
}

// parse parses the file as far as possible, and collects all mistakes.
func parse(name string, text []byte) (*File, *decoder) {
	f, d := defaults(), &decoder{Walker: yamlfile.Walker{File: name}}
	f.Name = name
	if len(text) > MaxBytes {
		d.Fail(&yaml.Node{}, "the file is longer than %d bytes, the maximum", MaxBytes)
		return f, d
	}
	if !d.checkPrintable(text) {
		return f, d
	}
	if root := d.document(text); root != nil {
		s := f.section()
		s.read(d, root)
	}
	return f, d
}

// checkPrintable refuses text with characters that are not printable. The YAML library would refuse it, too, but would
// not say where the character is.
func (d *decoder) checkPrintable(text []byte) bool {
	line, column := 1, 0
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRune(text[i:])
		column++
		switch {
		case r == utf8.RuneError && size == 1:
			d.Fail(&yaml.Node{Line: line, Column: column}, "byte 0x%02x: the file is not UTF-8 text", text[i])
			return false
		case unicode.IsControl(r) && r != '\t' && r != '\n' && r != '\r' && r != 0x85:
			d.Fail(&yaml.Node{Line: line, Column: column}, "control character %U: the file is not text", r)
			return false
		case r == '\n':
			line, column = line+1, 0
		}
		i += size
	}
	return true
}

func (d *decoder) document(text []byte) *yaml.Node {
	loader, err := yaml.NewLoader(bytes.NewReader(text))
	if err != nil {
		d.failSyntax(err, text)
		return nil
	}
	var first, second yaml.Node
	switch err := loader.Load(&first); {
	case errors.Is(err, io.EOF), err == nil && (len(first.Content) == 0 || yamlfile.IsNull(first.Content[0])):
		d.Fail(&yaml.Node{}, "the file is empty: want at least rules")
		return nil
	case err != nil:
		d.failSyntax(err, text)
		return nil
	}
	switch err := loader.Load(&second); {
	case err == nil:
		d.Fail(&second, "a second document begins: a rule file has one document, so leave the --- out")
		return nil
	case !errors.Is(err, io.EOF):
		d.failSyntax(err, text)
		return nil
	}
	return first.Content[0]
}

// failSyntax notes an error of the YAML library about text that is not YAML.
func (d *decoder) failSyntax(err error, text []byte) {
	node, message := &yaml.Node{}, err.Error()
	if loadErr := (*yaml.LoadError)(nil); errors.As(err, &loadErr) {
		node.Line, node.Column, message = loadErr.Mark.Line, loadErr.Mark.Column, loadErr.Message
		if loadErr.ContextMsg != "" {
			message = fmt.Sprintf("%s (%s)", message, loadErr.ContextMsg)
		}
	}
	if tab := tabBefore(text, node.Line); tab > 0 {
		node.Column, message = tab, "a tab: lines are indented by spaces"
	}
	if line := lineOf(text, node.Line); unquotedBraces.MatchString(line) {
		message += "; write a path with braces in quotes: path: " + strconv.Quote(unquotedBraces.FindStringSubmatch(line)[1])
	}
	d.Fail(node, "not YAML: %s", message)
}

// unquotedBraces matches a path that has braces but no quotes. YAML would read such braces as a mapping.
var unquotedBraces = regexp.MustCompile(`path: *\[? *(/[^\s"',]*\{\w+(?:\.\.\.)?\}[^\s"',{}\]]*)`)

// lineOf returns a line of a text. Lines are counted from 1. It returns "" if there is no such line.
func lineOf(text []byte, line int) string {
	lines := strings.SplitN(string(text), "\n", line+1)
	if line < 1 || line > len(lines) {
		return ""
	}
	return lines[line-1]
}

// tabBefore returns the column of a tab in the indentation of a line. It returns 0 if there is none.
func tabBefore(text []byte, line int) int {
	indented := lineOf(text, line)
	rest := strings.TrimLeft(indented, " ")
	if strings.HasPrefix(rest, "\t") {
		return len(indented) - len(rest) + 1
	}
	return 0
}

func (d *decoder) tryCertificates() {
	for _, c := range d.certificates {
		if _, err := tls.LoadX509KeyPair(c.files.CertFile, c.files.KeyFile); err != nil {
			d.Fail(c.node, "tls: %v", err)
		}
	}
}

// resolvePath returns the path of a file from its name in the rule file. A relative name is relative to the rule file's
// directory.
func (d *decoder) resolvePath(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(filepath.Dir(d.File), name)
}
