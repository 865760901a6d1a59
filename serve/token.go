package serve

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// Scopes of tokens. [ScopeAdmin] includes the others.
const (
	ScopeRun   = "run"
	ScopeRead  = "read"
	ScopeAdmin = "admin"
)

// Token is a bearer token. Name is what logs say.
type Token struct {
	Name, Secret string
	Scopes       []string
}

// minSecret is the least length of a secret, in bytes.
const minSecret = 16

func (t Token) check() error {
	if len(t.Secret) < minSecret {
		return fmt.Errorf("the secret has less than %d bytes", minSecret)
	}
	if len(t.Scopes) == 0 {
		return errors.New("it has no scopes: give it some of run, read, admin")
	}
	for _, s := range t.Scopes {
		if s != ScopeRun && s != ScopeRead && s != ScopeAdmin {
			return fmt.Errorf("scope %.40q is not one of run, read, admin", s)
		}
	}
	return nil
}

func (t *Token) allows(scope string) bool {
	return slices.Contains(t.Scopes, scope) || slices.Contains(t.Scopes, ScopeAdmin)
}

// keyring finds tokens by their secrets, of which it keeps hashes.
type keyring struct {
	tokens []Token
	hashes [][sha256.Size]byte
}

func newKeyring(tokens []Token) *keyring {
	k := &keyring{}
	for _, t := range tokens {
		k.hashes = append(k.hashes, sha256.Sum256([]byte(t.Secret)))
		t.Secret = ""
		k.tokens = append(k.tokens, t)
	}
	return k
}

// find takes as long for any secret.
func (k *keyring) find(secret string) *Token {
	hash := sha256.Sum256([]byte(secret))
	found := -1
	for i := range k.hashes {
		found = subtle.ConstantTimeSelect(subtle.ConstantTimeCompare(hash[:], k.hashes[i][:]), i, found)
	}
	if found < 0 {
		return nil
	}
	return &k.tokens[found]
}

// bearer returns the token of a request, empty if it has none.
func bearer(h http.Header) string {
	scheme, secret, _ := strings.Cut(h.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(secret)
}
