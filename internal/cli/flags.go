package cli

import (
	"errors"
	"log/slog"
	"strings"

	"github.com/spf13/pflag"
)

// Flags of several commands, with what they say of themselves.
const (
	configUsage = "config file (default mortise.yaml in the current folder"
	storeUsage  = "SQLite file, or nats:// or postgres:// URL (overrides MORTISE_STORE and store of the config)"
)

// configFlag adds --config. More continues where its default is.
func configFlag(f *pflag.FlagSet, to *string, more string) {
	f.StringVarP(to, "config", "c", "", configUsage+more+")")
}

// levelFlag adds --log-level.
func levelFlag(f *pflag.FlagSet, to *slog.Level, level slog.Level) {
	*to = level
	f.Var((*logLevel)(to), "log-level", "debug, info, warn or error, to standard error")
}

// logLevel is a flag.
type logLevel slog.Level

func (l *logLevel) String() string { return strings.ToLower(slog.Level(*l).String()) }
func (*logLevel) Type() string     { return "string" }

func (l *logLevel) Set(text string) error {
	if (*slog.Level)(l).UnmarshalText([]byte(text)) != nil {
		return errors.New("must be debug, info, warn or error")
	}
	return nil
}

// outputFlag adds --output.
func outputFlag(f *pflag.FlagSet, to *string, usage string) {
	*to = "table"
	f.VarP((*outputFormat)(to), "output", "o", usage)
}

// outputFormat is a flag: table or json.
type outputFormat string

func (o *outputFormat) String() string { return string(*o) }
func (*outputFormat) Type() string     { return "string" }

func (o *outputFormat) Set(text string) error {
	if text != "table" && text != "json" {
		return errors.New("must be table or json")
	}
	*o = outputFormat(text)
	return nil
}

// outputOption is how a command prints.
type outputOption struct {
	format string
	json   bool
}

func (o *outputOption) bind(f *pflag.FlagSet) {
	outputFlag(f, &o.format, "table or json")
	f.BoolVar(&o.json, "json", false, "short for --output json")
}

// asJSON reports whether JSON is wanted.
func (o *outputOption) asJSON() bool { return o.json || o.format == "json" }
