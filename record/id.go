package record

import (
	"fmt"
	"strings"
)

// maxRunID bounds the id of a run, in bytes. maxNamed is how many runs an error names.
const (
	maxRunID = 128
	maxNamed = 8
)

// CheckRun refuses the id of a run that not every store can keep.
func CheckRun(id string) error {
	good := id != "" && len(id) <= maxRunID
	for i := 0; good && i < len(id); i++ {
		c := id[i]
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		good = letter || i > 0 && (c == '-' || c == '_' || c == '.')
	}
	if !good {
		return fmt.Errorf("record: run %.140q: the id cannot name a record; it must match [A-Za-z0-9][A-Za-z0-9._-]{0,127}", id)
	}
	return nil
}

// Find returns the whole id of the run that is meant: the one with this id, or the only one whose
// id begins so. Runs are the ids that there are, newest first, and place is where they are, for
// the error: [ErrUnknown] or [ErrAmbiguous].
func Find(id string, runs []string, place string) (string, error) {
	var matches []string
	for _, run := range runs {
		if run == id {
			return id, nil
		}
		if id != "" && strings.HasPrefix(run, id) {
			matches = append(matches, run)
		}
	}
	switch {
	case len(matches) == 1:
		return matches[0], nil
	case len(matches) > 1:
		return "", fmt.Errorf("record: run %.140q: %w: %s; write more of it", id, ErrAmbiguous, named(matches))
	case len(runs) == 0:
		return "", fmt.Errorf("record: run %.140q: %w, and there are none in %s", id, ErrUnknown, place)
	default:
		return "", fmt.Errorf("record: run %.140q: %w in %s; the newest are %s", id, ErrUnknown, place, named(runs))
	}
}

func named(ids []string) string {
	text := strings.Join(ids[:min(len(ids), maxNamed)], ", ")
	if more := len(ids) - maxNamed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
