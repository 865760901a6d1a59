package replaycmd

import (
	"fmt"
	"os"

	"github.com/mortise-dev/mortise/internal/config"
	"github.com/mortise-dev/mortise/internal/exit"
)

// chooseStore sets the store to the one of the command line, or of the config, and refuses another one for decision records.
func chooseStore(c *config.Config, o Options) error {
	store, name := o.Store, "--store "+config.Shown(o.Store)
	if store == config.InMemory || store == "" && c.Store == config.InMemory {
		c.Store = "" // a replay without a store keeps its log in memory
		return nil
	}
	if store == "" && c.Store != "" {
		store, name = c.Path(c.Store), "store "+config.Shown(c.Store)+" of the config"
	}
	if store == "" {
		return nil
	}
	env := os.Getenv(config.RecordStoreEnv)
	switch {
	case o.NoRecord || c.Record.Disabled:
	case o.RecordStore != "":
		return exit.With(exit.Usage, fmt.Errorf("%s and --record-store %s both name where decision records are kept; name one", name, config.Shown(o.RecordStore)))
	case env != "":
		return exit.With(exit.Usage, fmt.Errorf("%s and %s %s both name where decision records are kept; unset one", name, config.RecordStoreEnv, config.Shown(env)))
	case c.Record.Store != "":
		return exit.With(exit.Usage, fmt.Errorf("%s and record.store %s of the config both name where decision records are kept; name one", name, config.Shown(c.Record.Store)))
	}
	c.Store = store
	return nil
}
