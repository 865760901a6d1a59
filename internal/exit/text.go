package exit

import (
	"errors"
	"strings"

	"github.com/mortise-dev/mortise/host"
)

// settingKeys are the keys of the config for the settings that host.LoadError names.
func settingKeys() map[string]string {
	return map[string]string{
		"Limits.MemoryPages":    "limits.memory_mib (16 pages are 1 MiB)",
		"Limits.CompileTimeout": "limits.compile_timeout",
		"Limits.InitTimeout":    "limits.init_timeout",
		"Limits.InputBytes":     "limits.input_mib",
		"Limits.OutputBytes":    "limits.output_mib",
		"Limits.Timeout":        "limits.timeout",
		"Limits.Instances":      "limits.instances",
		"Spec.SHA256":           "sha256",
		"host/capability/kv":    "grants: {kv: ...}",
		"host/capability/http":  "grants: {http: ...}",
		"host/capability/model": "",
	}
}

// storeKeys are the parts of a store's URL for the settings that stores name.
var storeKeys = strings.NewReplacer( //nolint:gochecknoglobals // a table
	"Config.Replicas is not set: use 3,", "the number of replicas is not given: use ?replicas=3 behind the URL,",
	"Config.Replicas is ", "replicas is ",
	"use another Config.Stream", "name another one, as in nats://HOST:4222/STREAM",
	"natsstore: Config.Stream ", "natsstore: the name in the URL, ",
	"pgstore: Config.Schema ", "pgstore: schema of the URL, ",
	"Config.URL", "the URL",
	"record: Config.Keep ", "record.keep ",
	"FileConfig.", "",
)

// Text returns an error's text for the users of the command, whose settings are keys of the config
// and not fields of Go.
func Text(err error) string {
	if err == nil {
		return ""
	}
	return storeKeys.Replace(wordedKeys(err))
}

func wordedKeys(err error) string {
	text := err.Error()
	if load, ok := err.(*host.LoadError); ok { //nolint:errorlint // those below are found one by one
		return loadWords(load)
	}
	below := JoinedErrors(err)
	if below == nil {
		if one := errors.Unwrap(err); one != nil {
			below = []error{one}
		} else if many, ok := err.(interface{ Unwrap() []error }); ok {
			below = many.Unwrap()
		}
	}
	for _, e := range below {
		if was, is := e.Error(), wordedKeys(e); was != is {
			text = strings.Replace(text, was, is, 1)
		}
	}
	return text
}

// loadWords names keys where the hint names fields, and leaves out what the config cannot set.
func loadWords(e *host.LoadError) string {
	said := *e
	for i, setting := range e.Settings {
		key, known := settingKeys()[setting]
		if !known {
			said.Hint = configless(&said, e.Settings[i:])
			break
		}
		said.Hint = strings.Replace(said.Hint, setting, key, 1)
	}
	return strings.ReplaceAll(said.Error(), " ()", "")
}

// configless is a hint without the alternatives that need a program of one's own.
func configless(e *host.LoadError, settings []string) string {
	var kept []string
	for part := range strings.SplitSeq(e.Hint, ", ") {
		part = strings.TrimPrefix(part, "or ")
		named := false
		for _, s := range settings {
			named = named || strings.Contains(part, s)
		}
		if !named {
			kept = append(kept, part)
		}
	}
	return strings.Join(kept, ", ")
}
