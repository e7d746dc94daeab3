package sealed

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

const (
	saltBytes = 16
	tagBytes  = 16
	timeBytes = 8
	// Overhead is how many bytes an id has in addition to the sealed receipt, before it is encoded as text.
	Overhead = saltBytes + timeBytes + tagBytes
	// MinKey and MaxKey bound the file of a key, in bytes.
	MinKey, MaxKey = 32, 4096
)

// ErrForged is returned for an id that was not sealed with the key, or was changed afterwards.
var ErrForged = errors.New("no such id: it was not sealed with the key of this server")

// A Sealer seals receipts into ids. Its methods may be called from any goroutine.
type Sealer struct {
	key [sha256.Size]byte
	use string
}

// New returns a sealer with a random key, so its ids are valid for this process only. use names the purpose of the ids:
// an id with another purpose is forged.
func New(use string) *Sealer {
	s := &Sealer{use: use}
	_, _ = rand.Read(s.key[:]) // never fails
	return s
}

// FromFile returns a sealer with the key in a file of 32 to 4,096 bytes of any content. Processes that read the same
// file accept each other's ids. An error names the file, and nothing of its content.
func FromFile(use, name string) (*Sealer, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, MaxKey+1))
	if err != nil {
		return nil, err
	}
	if len(text) < MinKey || len(text) > MaxKey {
		return nil, fmt.Errorf("%s: a key of %d bytes or more: want %d to %d random bytes", name, len(text), MinKey, MaxKey)
	}
	return &Sealer{sha256.Sum256(text), use}, nil
}

// cipher returns the cipher for the id with a salt. Each id has its own salt, and so its own key, and the nonce is
// constant.
func (s *Sealer) cipher(salt []byte) cipher.AEAD {
	of := hmac.New(sha256.New, s.key[:])
	of.Write(salt)
	of.Write([]byte(s.use))
	block, err := aes.NewCipher(of.Sum(nil))
	if err != nil {
		panic(err) // only for a key whose length is not 16, 24 or 32 bytes
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		panic(err) // only for a block size other than 16 bytes
	}
	return aead
}

var nonce [12]byte

// Seal returns the id of a receipt. It gives nothing back after expires. It is base64url text.
func (s *Sealer) Seal(receipt []byte, expires time.Time) string {
	id := make([]byte, saltBytes, Overhead+len(receipt))
	_, _ = rand.Read(id) // never fails
	plain := binary.LittleEndian.AppendUint64(make([]byte, 0, timeBytes+len(receipt)), uint64(expires.UnixNano()))
	id = s.cipher(id).Seal(id, nonce[:], append(plain, receipt...), nil)
	return base64.RawURLEncoding.EncodeToString(id)
}

// An Opened is the content of an id.
type Opened struct {
	Salt    []byte // of this id only
	Receipt []byte
	Expires time.Time
}

// Open returns the content of an id, or ErrForged.
func (s *Sealer) Open(id string) (o Opened, err error) {
	text, err := base64.RawURLEncoding.Strict().DecodeString(id)
	if err != nil || len(text) < Overhead {
		return o, ErrForged
	}
	salt := text[:saltBytes]
	plain, err := s.cipher(salt).Open(nil, nonce[:], text[saltBytes:], nil)
	if err != nil {
		return o, ErrForged
	}
	return Opened{salt, plain[timeBytes:], time.Unix(0, int64(binary.LittleEndian.Uint64(plain)))}, nil
}
