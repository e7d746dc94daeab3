// Package document reads the Markdown documents of this repository, for the tests that check them. It supports only the
// Markdown that these documents use.
package document

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"unicode"
)

// Read returns the text of every document, by its path relative to root, the directory of the repository. The documents
// are the Markdown files in this directory itself, in docs, and in examples.
func Read(root string) (map[string]string, error) {
	var paths []string
	for _, pattern := range []string{"*.md", "examples/*.md", "examples/*/*.md"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			return nil, err
		}
		paths = append(paths, found...)
	}
	err := filepath.WalkDir(filepath.Join(root, "docs"), func(path string, _ fs.DirEntry, err error) error {
		if filepath.Ext(path) == ".md" {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	texts := map[string]string{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return nil, err
		}
		texts[filepath.ToSlash(name)] = string(text)
	}
	return texts, nil
}

var (
	fencedBlock  = regexp.MustCompile("(?ms)^```([^\n]*)\n(.*?)^```\n")
	outputBlock  = regexp.MustCompile(`^\n(?:\S[^\n]*:\n\n)?((?:    [^\n]*\n|\n)+)`) // a sentence may precede it
	indentedLine = regexp.MustCompile(`(?m)^    (.*)$`)
	codeSpan     = regexp.MustCompile("`([^`]+)`")
	link         = regexp.MustCompile(`\]\(([^)\s]+)\)|(?:src|href)="([^"]+)"`)
	heading      = regexp.MustCompile(`(?m)^#+ (.*)$`)
)

func withoutBlocks(text string) string { return fencedBlock.ReplaceAllString(text, "") }

// An Example is a fenced block of code and its output. The output is the indented block that follows the code, or "" if
// there is no such block.
type Example struct{ Code, Output string }

// A Block is an Example with its language, from the line of the opening fence.
type Block struct {
	Language string
	Example
}

// Blocks returns the fenced blocks of a document.
func Blocks(text string) []Block {
	var blocks []Block
	for _, match := range fencedBlock.FindAllStringSubmatchIndex(text, -1) {
		b := Block{text[match[2]:match[3]], Example{Code: text[match[4]:match[5]]}}
		if m := outputBlock.FindStringSubmatch(text[match[1]:]); m != nil {
			b.Output = strings.TrimRight(indentedLine.ReplaceAllString(m[1], "$1"), "\n ")
		}
		blocks = append(blocks, b)
	}
	return blocks
}

// Examples returns the blocks of a document in a language, such as go.
func Examples(text, language string) []Example {
	var examples []Example
	for _, b := range Blocks(text) {
		if b.Language == language {
			examples = append(examples, b.Example)
		}
	}
	return examples
}

// Code returns the lines of all blocks of a document, and its code spans, which may continue on the next line.
func Code(text string) []string {
	var lines []string
	for _, m := range fencedBlock.FindAllStringSubmatch(text, -1) {
		lines = append(lines, strings.Split(m[2], "\n")...)
	}
	text = withoutBlocks(text)
	for _, m := range indentedLine.FindAllStringSubmatch(text, -1) {
		lines = append(lines, strings.TrimSpace(m[1]))
	}
	for _, m := range codeSpan.FindAllStringSubmatch(text, -1) {
		lines = append(lines, strings.Join(strings.Fields(m[1]), " "))
	}
	return lines
}

// Links returns the targets of the links and pictures of a document that are in this repository.
func Links(text string) []string {
	var targets []string
	for _, m := range link.FindAllStringSubmatch(codeSpan.ReplaceAllString(withoutBlocks(text), ""), -1) {
		if target := m[1] + m[2]; !strings.Contains(target, "://") {
			targets = append(targets, target)
		}
	}
	return targets
}

// Anchors returns the names that GitHub gives to the headings of a document.
func Anchors(text string) []string {
	var names []string
	counts := map[string]int{}
	for _, m := range heading.FindAllStringSubmatch(withoutBlocks(text), -1) {
		name := strings.Map(func(r rune) rune {
			switch {
			case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
				return unicode.ToLower(r)
			case r == ' ':
				return '-'
			}
			return -1
		}, m[1])
		counts[name]++
		if n := counts[name]; n > 1 {
			name = fmt.Sprintf("%s-%d", name, n-1)
		}
		names = append(names, name)
	}
	return names
}
