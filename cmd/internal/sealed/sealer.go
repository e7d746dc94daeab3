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
	// MinKey and MaxKey are the bounds of the size of a file with a key, in bytes.
	MinKey, MaxKey = 32, 4096
)

// ErrForged means that an id was not sealed with the key, or was changed after that.
var ErrForged = errors.New("no such id: it was not sealed with the key of this server")

// A Sealer seals receipts into ids. Its methods may be called from any goroutine.
type Sealer struct {
	key     [sha256.Size]byte
	purpose string
}

// New returns a sealer with a random key, so its ids are valid only in this process. An id with another purpose counts
// as forged.
func New(purpose string) *Sealer {
	s := &Sealer{purpose: purpose}
	_, _ = rand.Read(s.key[:]) // never fails
	return s
}

// FromFile returns a sealer whose key is the content of a file. The file may have any 32 to 4,096 bytes. Processes that
// read the same file accept each other's ids. An error has the name of the file, and nothing of its content.
func FromFile(purpose, name string) (*Sealer, error) {
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
	return &Sealer{sha256.Sum256(text), purpose}, nil
}

// cipher returns the cipher for the id with a salt. Because each id has its own salt, it also has its own key, so the
// nonce can be constant.
func (s *Sealer) cipher(salt []byte) cipher.AEAD {
	mac := hmac.New(sha256.New, s.key[:])
	mac.Write(salt)
	mac.Write([]byte(s.purpose))
	block, err := aes.NewCipher(mac.Sum(nil))
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

// Seal returns the id of a receipt, as base64url text. After the time in the parameter expires, the id gives nothing
// back.
func (s *Sealer) Seal(receipt []byte, expires time.Time) string {
	id := make([]byte, saltBytes, Overhead+len(receipt))
	_, _ = rand.Read(id) // never fails
	plain := binary.LittleEndian.AppendUint64(make([]byte, 0, timeBytes+len(receipt)), uint64(expires.UnixNano()))
	id = s.cipher(id).Seal(id, nonce[:], append(plain, receipt...), nil)
	return base64.RawURLEncoding.EncodeToString(id)
}

// An Opened is the content of an id.
type Opened struct {
	Salt    []byte // different for each id
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
