package program

import (
	"context"
	"fmt"
	"os"

	"github.com/mortise-dev/mortise/host/capability/http"
	"github.com/mortise-dev/mortise/internal/config"
)

// secret grants a credential. That there is one is checked now; its value is read each
// time it is needed, so that a file may be replaced while the program runs.
func (r *granter) secret(module, name string, c config.SecretConfig) (http.Secret, error) {
	read := func() (string, error) { return config.Variable(c.Env) }
	if c.File != "" {
		path := r.cfg.Path(c.File)
		read = func() (string, error) { return config.PrivateFile(path) }
		f, err := config.OpenPrivate(path)
		if err != nil {
			return http.Secret{}, err
		}
		if err := f.Close(); err != nil {
			return http.Secret{}, fmt.Errorf("file: %w", err)
		}
	} else if _, there := os.LookupEnv(c.Env); !there {
		return http.Secret{}, fmt.Errorf("env: the environment has no variable %.80q; set it for this command", c.Env)
	}
	return http.Secret{
		Hosts: c.Hosts, Headers: c.Headers, Plain: c.Plain,
		Value: func(ctx context.Context) (string, error) {
			value, err := read()
			if err != nil { // no other error is reported
				r.logger.WarnContext(ctx, "secret cannot be read", "module", module, "secret", name, "error", err)
			}
			return value, err
		},
	}, nil
}
