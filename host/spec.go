package host

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/mortise-dev/mortise/internal/engine"
)

// Spec describes what to load and under which conditions.
type Spec struct {
	// Name of the module in errors, logs and statistics. Empty means the file
	// name of Path without its extension.
	Name string
	// Path of the binary. When Wasm is set, Path is not read; it only names
	// the origin of the bytes.
	Path string
	// Wasm is the binary. Do not change it while the module is being loaded.
	Wasm []byte
	// SHA256 of the binary in hexadecimal, with or without "sha256:" before it.
	// Empty means that any binary is fine.
	SHA256 string
	// Links are further modules that the binary imports functions from, at most 16.
	Links []Link
	// Require names exports that the module must have, with no parameters and an
	// i32 as result.
	Require []string
	// Limits of the module. Zero fields take those of [Config].
	Limits Limits
	// Grants of the module. The zero Grants grant nothing.
	Grants Grants
}

// withDefaults checks s and fills in its name and limits.
func (s Spec) withDefaults(base Limits) (Spec, error) {
	if s.Name == "" && s.Path != "" {
		file := filepath.Base(s.Path)
		s.Name = strings.TrimSuffix(file, filepath.Ext(file))
	}
	if s.Name == "" {
		return s, errors.New("host: spec: Name is empty and there is no Path to take it from")
	}
	if s.Path == "" && s.Wasm == nil {
		return s, fmt.Errorf("host: spec of %q: neither Path nor Wasm is set", engine.Clean(s.Name, 128))
	}
	var err error
	if s.Limits, err = s.Limits.withDefaults(base); err != nil {
		return s, fmt.Errorf("host: spec of %q: %w", engine.Clean(s.Name, 128), err)
	}
	if s.Grants, err = s.Grants.withDefaults(s.Name); err != nil {
		return s, fmt.Errorf("host: spec of %q: %w", engine.Clean(s.Name, 128), err)
	}
	return s, nil
}
