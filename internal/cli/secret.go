package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"

	"github.com/mortise-dev/mortise/host/capability/http"
)

// maxSecret bounds the value of a secret, in bytes. It is that of the host.
const maxSecret = 4 << 10

// secret grants a credential. That there is one is checked now; its value is read each
// time it is needed, so that a file may be replaced while the program runs.
func (r *granter) secret(module, name string, c SecretConfig) (http.Secret, error) {
	read := func() (string, error) { return variable(c.Env) }
	if c.File != "" {
		path := r.cfg.path(c.File)
		read = func() (string, error) { return privateFile(path) }
		f, err := openPrivate(path)
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

func variable(name string) (string, error) {
	value := os.Getenv(name)
	if value == "" {
		return "", fmt.Errorf("the variable %.80q is empty", name)
	}
	return value, nil
}

// privateFile returns the content of a file without the line break at its end.
func privateFile(path string) (string, error) {
	f, err := openPrivate(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxSecret+3))
	if err != nil {
		return "", fmt.Errorf("file: %w", err)
	}
	value := strings.TrimSuffix(strings.TrimSuffix(string(b), "\n"), "\r")
	switch {
	case value == "":
		return "", fmt.Errorf("file: %s is empty", path)
	case len(value) > maxSecret:
		return "", fmt.Errorf("file: %s has more than %d bytes", path, maxSecret)
	}
	return value, nil
}

// openPrivate opens a file that no other user can read or write. It looks first, because opening a
// pipe would wait for a writer.
func openPrivate(path string) (*os.File, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("file: %s is not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("file: %w", err)
	}
	info, err := f.Stat()
	switch {
	case err != nil:
		err = fmt.Errorf("file: %w", err)
	case !info.Mode().IsRegular():
		err = fmt.Errorf("file: %s is not a regular file", path)
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0:
		err = fmt.Errorf("file: %s: others can use the file (mode %s); use chmod 600", path, info.Mode().Perm())
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
