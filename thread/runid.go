package thread

import (
	"fmt"
	"strings"
)

// maxRunID bounds the id of a run, in bytes. maxNamed is how many runs an error names.
const (
	maxRunID = 128
	maxNamed = 8
)

// CheckRun refuses the id of a run that cannot name a record.
func CheckRun(id string) error {
	good := id != "" && len(id) <= maxRunID
	for i := 0; good && i < len(id); i++ {
		c := id[i]
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		good = letter || i > 0 && (c == '-' || c == '_' || c == '.')
	}
	if !good {
		return fmt.Errorf("run %.140q: the id cannot name a decision record; it must match [A-Za-z0-9][A-Za-z0-9._-]{0,127}", id)
	}
	return nil
}

// named lists ids, the first ones of many.
func named(ids []string) string {
	text := strings.Join(ids[:min(len(ids), maxNamed)], ", ")
	if len(ids) > maxNamed {
		text += " and more"
	}
	return text
}
