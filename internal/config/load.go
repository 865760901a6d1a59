package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/goccy/go-yaml"

	"github.com/mortise-dev/mortise/internal/exit"
)

// FileName is the file that is looked for in the current folder.
const FileName = "mortise.yaml"

// Load reads a config file; with no path, mortise.yaml of the current
// folder.
func Load(path string, names Names) (*Config, error) {
	name := cmp.Or(path, FileName)
	data, err := Read(name)
	if err != nil {
		return nil, err
	}
	return Parse(name, data, names)
}

// Parse reads the text of the config file of a name, to whose folder its paths are relative.
func Parse(name string, data []byte, names Names) (*Config, error) {
	cfg, err := Decode(data, names)
	if placed := (*placedError)(nil); errors.As(err, &placed) {
		return nil, fmt.Errorf("config: %s:%w", name, err)
	}
	if err != nil {
		return nil, exit.Under("config: "+name, err)
	}
	cfg.dir = filepath.Dir(name)
	return cfg, nil
}

// Read reads the file of a config.
func Read(name string) ([]byte, error) {
	data, err := os.ReadFile(name)
	if errors.Is(err, os.ErrNotExist) {
		hint := "name a file with --config"
		switch own, _ := os.UserConfigDir(); name {
		case FileName:
			hint = "mortise init writes one; or name a file with --config"
		case filepath.Join(own, "mortise", FileName):
			hint = "mortise init writes one here, mortise init --user that one; or name a file with --config"
		}
		return nil, fmt.Errorf("config: %s: there is no such file; %s", name, hint)
	}
	if info, failed := os.Stat(name); err != nil && failed == nil && info.IsDir() {
		return nil, fmt.Errorf("config: %s is a folder; name the file, %s for example", name, filepath.Join(name, FileName))
	}
	if err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	return data, nil
}

// Decode reads the text of a config, which may name what names has.
func Decode(data []byte, names Names) (*Config, error) {
	cfg := &Config{names: names}
	dec := yaml.NewDecoder(bytes.NewReader(data), yaml.Strict())
	if err := dec.Decode(cfg); err != nil && !errors.Is(err, io.EOF) {
		return nil, &placedError{problemAt(data, err)}
	}
	if err := dec.Decode(new(any)); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is more than one document; keep one")
	}
	cfg.Compaction.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	return cfg, nil
}

// Bundled is the config of mortise run in a folder without one: bundled policies, no plugins.
const Bundled = `version: 1
compaction:
  summarizer: {policy: ledger}
  admission: {policy: cost}
`

// FileOf is the config of a command line.
func FileOf(flag string) string { return cmp.Or(flag, os.Getenv("MORTISE_CONFIG"), FileName) }
