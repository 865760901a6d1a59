package sqlcore

import (
	"fmt"
	"io/fs"
)

// Scripts returns the scripts in the folder schema, in the order of their names: each leads from one version to the next. Those of a release
// never change.
func Scripts(files fs.FS) ([]string, error) {
	names, err := fs.Glob(files, "schema/*.sql")
	if err != nil {
		return nil, err
	}
	out := make([]string, 0, len(names))
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		out = append(out, string(text))
	}
	return out, nil
}

// Check refuses tables of a version that this program, which knows them up to one, cannot use or, with existing, may not migrate.
func Check(version, known int, existing bool) error {
	switch {
	case version > known:
		return fmt.Errorf("its tables have version %d, and this program knows %d; use a newer version of Mortise", version, known)
	case version < known && existing:
		return fmt.Errorf("its tables have version %d, and this program has %d; open it with a program that writes first", version, known)
	default:
		return nil
	}
}

// Absent returns an fs.ErrNotExist of tables.
func Absent(text string) error { return absentError(text) }

type absentError string

func (a absentError) Error() string { return string(a) }

func (absentError) Is(target error) bool { return target == fs.ErrNotExist }
