package admin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/weir-go/weir/cmd/internal/secretfile"
)

// A role says what a caller may do. A higher role includes the lower roles.
type role uint8

const (
	anyone   role = iota // has no token, or a wrong one
	viewer               // may read
	operator             // may read, change, and take profiles of the program
)

// minToken is the length of the shortest token in characters, because shorter tokens can be guessed.
const minToken = 16

// Access has the valid tokens. The zero Access accepts no caller, because it has no token. A nil Access requires no
// token.
type Access struct {
	hashes []secretfile.Hash
	roles  []role
	names  []string // the names of the tokens' owners; "" for a token without a name
}

// NewAccess reads two files: file has tokens that may do everything, and readFile has read-only tokens. The name ""
// means no file. A file has 1 to 16 lines. Each line is a token or name:token. A token has at least 16 characters, all
// of them valid in a bearer token (RFC 6750). An error names the file and the line, but not the token.
func NewAccess(file, readFile string) (*Access, error) {
	a := &Access{}
	if err := a.add(file, operator); err != nil {
		return nil, err
	}
	if readFile != "" {
		if err := a.add(readFile, viewer); err != nil {
			return nil, err
		}
	}
	return a, nil
}

var (
	tokenForm = regexp.MustCompile(`^[A-Za-z0-9._~+/-]+=*$`)
	// A name is written into logs, and can be the user name in HTTP's Basic scheme.
	nameForm = regexp.MustCompile(`^[A-Za-z0-9._@-]{1,64}$`)
)

func (a *Access) add(file string, r role) error {
	text, err := secretfile.Read(file, "token")
	if err != nil {
		return err
	}
	lines, err := secretfile.Lines(text, "token")
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	for i, line := range lines {
		owner, secret, isNamed := strings.Cut(line, ":")
		if !isNamed {
			owner, secret = "", line
		}
		problem := ""
		switch {
		case isNamed && !nameForm.MatchString(owner):
			problem = "the name before the colon: want 1 to 64 letters, digits, dots, @, _ and -"
		case len(secret) < minToken:
			problem = fmt.Sprintf("%d characters: want at least %d, such as what openssl rand -hex 32 writes", len(secret), minToken)
		case !tokenForm.MatchString(secret):
			problem = "want letters, digits and -._~+/ only, and = at the end"
		case secretfile.Find(a.hashes, []byte(secret)) >= 0:
			problem = "it occurs twice, or in both files"
		}
		if problem != "" {
			return fmt.Errorf("%s: token %d: %s", file, i+1, problem)
		}
		a.hashes = append(a.hashes, secretfile.HashOf([]byte(secret)))
		a.roles, a.names = append(a.roles, r), append(a.names, owner)
	}
	return nil
}

// A caller describes the sender of a request.
type caller struct {
	role     role
	name     string // the name of its token, or else the name that the caller gives; "" for none
	verified bool   // true if name is the name of the token
}

var (
	errNoToken    = errors.New("a token is required: send Authorization: Bearer TOKEN, or Basic with the token as the password")
	errWrongToken = errors.New("the token is not in the files, or it is another user's")
)

func (a *Admin) access() *Access {
	if a.config.Access == nil {
		return nil
	}
	return a.config.Access()
}

// caller returns the sender of a request. Without required tokens, every caller may do everything. A missing or wrong
// token is an error.
func (a *Admin) caller(r *http.Request) (caller, error) {
	access := a.access()
	if access == nil {
		return caller{role: operator}, nil
	}
	user, secret, isBasic := r.BasicAuth()
	if !isBasic {
		scheme, credentials, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		if !strings.EqualFold(scheme, "Bearer") {
			return caller{}, errNoToken
		}
		secret = strings.TrimSpace(credentials)
	}
	i := secretfile.Find(access.hashes, []byte(secret))
	switch {
	case i < 0, isBasic && access.names[i] != "" && access.names[i] != user:
		return caller{}, errWrongToken
	case access.names[i] != "":
		return caller{access.roles[i], access.names[i], true}, nil
	case isBasic && user != "" && (!nameForm.MatchString(user) || access.hasName(user)):
		return caller{}, errWrongToken
	}
	return caller{role: access.roles[i], name: user}, nil
}

// hasName reports whether a token has this name. Callers with other tokens may not use the name.
func (a *Access) hasName(name string) bool {
	return a != nil && name != "" && slices.Contains(a.names, name)
}

type callerKey struct{}

// callerOf returns the sender of a request that [Admin.allow] has passed on.
func callerOf(r *http.Request) caller {
	c, _ := r.Context().Value(callerKey{}).(caller)
	return c
}

// allow returns a handler that passes on the requests of callers with a sufficient role. It refuses all other requests.
func (a *Admin) allow(e endpoint) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := a.caller(r)
		if c.role >= e.role {
			e.serve(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, c)))
			return
		}
		status := http.StatusForbidden
		if err == nil {
			err = errors.New("the token may only look")
		} else {
			status = http.StatusUnauthorized
			// Browsers ask for a password if the Basic scheme comes first, and remember it until they are closed.
			w.Header()["Www-Authenticate"] = []string{`Basic realm="weir", charset="UTF-8"`, `Bearer realm="weir"`}
		}
		if !errors.Is(err, errNoToken) {
			a.log().Warn("admin: refused", "path", r.URL.Path, "method", r.Method, "peer", r.RemoteAddr, "who", c.name, "err", err)
		}
		writeError(w, status, err)
	})
}
