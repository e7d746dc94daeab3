// Package secretfile reads files of secrets, with one secret per line. It compares secrets in constant time.
package secretfile

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"io"
	"strings"

	"github.com/weir-go/weir/internal/openfile"
)

const (
	// MaxBytes is the largest size of a file.
	MaxBytes = 64 << 10
	// Max is the largest number of secrets in a file. A file may have several secrets, so that clients can change from
	// one to the next.
	Max = 16
)

// A Hash is stored instead of a secret.
type Hash = [sha256.Size]byte

// HashOf returns the hash of a secret.
func HashOf(secret []byte) Hash { return sha256.Sum256(secret) }

// Read returns the text of a file of at most MaxBytes. The parameter kind is the name of a secret in the errors of this
// package, such as "password". The errors never contain a secret.
func Read(name, kind string) (string, error) {
	file, err := openfile.Open(name)
	if err != nil {
		return "", err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, MaxBytes+1))
	if err != nil {
		return "", err
	}
	if len(text) > MaxBytes {
		return "", fmt.Errorf("%s: more than %d bytes: want a %s on each line", name, MaxBytes, kind)
	}
	return string(text), nil
}

// Lines returns the lines of a text without surrounding spaces. It skips empty lines. It returns an error if no lines
// remain, or if more than Max lines remain.
func Lines(text, kind string) (lines []string, err error) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 || len(lines) > Max {
		return nil, fmt.Errorf("%d %ss: want 1 to %d, one on each line", len(lines), kind, Max)
	}
	return lines, nil
}

// Find returns the index in hashes of the hash of a secret. It returns -1 if hashes does not have this hash. It always
// compares all hashes.
func Find(hashes []Hash, secret []byte) int {
	hash, found := HashOf(secret), -1
	for i := range hashes {
		found = subtle.ConstantTimeSelect(subtle.ConstantTimeCompare(hash[:], hashes[i][:]), i, found)
	}
	return found
}
