package config

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

// RecordConfig names where the decisions of runs are kept, for mortise explain.
type RecordConfig struct {
	// Store is a SQLite file or a URL, as for store; a file in the user's state folder when empty.
	Store string `yaml:"store"`
	// Keep so many runs, 1000 when 0.
	Keep int `yaml:"keep"`
	// Disabled keeps nothing.
	Disabled bool `yaml:"disabled"`
}

func (c *RecordConfig) validate() error {
	if c.Keep < 0 {
		return fmt.Errorf("record.keep: is %d, must not be negative", c.Keep)
	}
	return nil
}

// RecordStoreEnv names the store of records.
const RecordStoreEnv = "MORTISE_RECORD_STORE"

// RecordStore names where records are: the store of the flag, of the environment, of the config, or else the default one. Chosen reports
// whether the user has named it.
func RecordStore(flag string, cfg *Config) (name string, chosen bool, err error) {
	if name := cmp.Or(flag, os.Getenv(RecordStoreEnv)); name != "" {
		return name, true, nil
	}
	if cfg != nil {
		kept := cmp.Or(cfg.Store, cfg.Record.Store)
		if kept == InMemory {
			kept = cfg.Record.Store
		}
		if kept != "" {
			return cfg.Path(kept), true, nil
		}
	}
	dir, err := stateDir()
	if err != nil {
		return "", false, fmt.Errorf("records: there is no user state folder (%w); set record.store or --record-store", err)
	}
	return filepath.Join(dir, "mortise", "runs.db"), false, nil
}

// stateDir is the user's folder for what programs remember.
func stateDir() (string, error) {
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return dir, nil
	}
	if runtime.GOOS == "windows" || runtime.GOOS == "darwin" {
		return os.UserConfigDir()
	}
	home, err := os.UserHomeDir()
	return filepath.Join(home, ".local", "state"), err
}
