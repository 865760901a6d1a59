package program

import (
	"errors"
	"fmt"

	"github.com/mortise-dev/mortise/internal/config"
	"github.com/mortise-dev/mortise/serve"
)

// tokens reads the values of the tokens.
func (c *Setup) tokens() ([]serve.Token, error) {
	var out []serve.Token
	var errs []error
	for _, t := range c.Serve.Tokens {
		secret, err := config.KeyConfig{Env: t.Env, File: t.File}.Read(c.Config)
		if err == nil && len(secret) < config.MinToken {
			err = fmt.Errorf("the token has %d bytes; use at least %d random ones, as of openssl rand -hex 32", len(secret), config.MinToken)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("serve.tokens (%.64s): %w", t.Name, err))
			continue
		}
		out = append(out, serve.Token{Name: t.Name, Secret: secret, Scopes: t.Scopes})
	}
	return out, errors.Join(errs...)
}
