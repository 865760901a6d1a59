package command

import (
	"errors"
	"log/slog"
	"strings"

	"github.com/spf13/pflag"
)

// Flags of several commands, with what they say of themselves.
const (
	configUsage = "config file (default mortise.yaml in the current folder"
	StoreUsage  = "SQLite file, or nats:// or postgres:// URL (overrides MORTISE_STORE and store of the config)"
)

// ConfigFlag adds --config. More continues where its default is.
func ConfigFlag(f *pflag.FlagSet, to *string, more string) {
	f.StringVarP(to, "config", "c", "", configUsage+more+")")
}

// LevelFlag adds --log-level.
func LevelFlag(f *pflag.FlagSet, to *slog.Level, level slog.Level) {
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

// OutputFlag adds --output.
func OutputFlag(f *pflag.FlagSet, to *string, usage string) {
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

// OutputOption is how a command prints.
type OutputOption struct {
	format string
	json   bool
}

// Bind adds --output and --json.
func (o *OutputOption) Bind(f *pflag.FlagSet) {
	OutputFlag(f, &o.format, "table or json")
	f.BoolVar(&o.json, "json", false, "short for --output json")
}

// AsJSON reports whether JSON is wanted.
func (o *OutputOption) AsJSON() bool { return o.json || o.format == "json" }
