// Package secretfile reads files of secrets, one on each line. It compares secrets in constant time.
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
	// Max is the largest number of secrets in a file. A file may have several, so that clients can change from one to
	// another.
	Max = 16
)

// A Hash is kept instead of a secret.
type Hash = [sha256.Size]byte

// HashOf returns the hash of a secret.
func HashOf(secret []byte) Hash { return sha256.Sum256(secret) }

// Read returns the text of a file of at most MaxBytes. Errors of this package use what as the name of a secret, such as
// "password". They never contain a secret.
func Read(name, what string) (string, error) {
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
		return "", fmt.Errorf("%s: more than %d bytes: want a %s on each line", name, MaxBytes, what)
	}
	return string(text), nil
}

// Lines returns the lines of a text without surrounding spaces. It skips empty lines. No line, or more than Max, is an
// error.
func Lines(text, what string) (all []string, err error) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			all = append(all, line)
		}
	}
	if len(all) == 0 || len(all) > Max {
		return nil, fmt.Errorf("%d %ss: want 1 to %d, one on each line", len(all), what, Max)
	}
	return all, nil
}

// Find returns the index of a secret among hashes; -1 if it is not there. It always compares all of them.
func Find(hashes []Hash, secret []byte) int {
	hash, found := HashOf(secret), -1
	for i := range hashes {
		found = subtle.ConstantTimeSelect(subtle.ConstantTimeCompare(hash[:], hashes[i][:]), i, found)
	}
	return found
}
