package engine

import (
	"context"
	"fmt"
	"io/fs"
)

// applicationID marks a file as ours: "mort".
const applicationID = 0x6d6f7274

// Schema is the tables of one part of the program. Its version is the number of its steps.
type Schema struct {
	// Name says whose tables they are.
	Name string
	// Steps lead from one version to the next, forward only. Those of a release never change.
	Steps []string
}

// SchemaOf reads a schema from scripts, a step each, in the order of their names.
func SchemaOf(name string, scripts fs.FS) (Schema, error) {
	s := Schema{Name: name}
	files, err := fs.Glob(scripts, "schema/*.sql")
	if err != nil {
		return s, fmt.Errorf("tables of %s: %w", name, err)
	}
	for _, file := range files {
		text, err := fs.ReadFile(scripts, file)
		if err != nil {
			return s, fmt.Errorf("tables of %s: %w", name, err)
		}
		s.Steps = append(s.Steps, string(text))
	}
	return s, nil
}

// Migrate brings the tables of a schema to its version, or refuses a file that is newer, or of
// another program. Each step is made whole or not at all, also if the process is killed. A file of which only what exists is used is
// checked alone.
func (f *File) Migrate(ctx context.Context, s Schema) error {
	if f.existing {
		if err := f.Read(ctx, s.there); err != nil {
			return fmt.Errorf("open %s: %w", f.path, err)
		}
		return nil
	}
	err := f.Write(ctx, mark)
	for done := false; err == nil && !done; {
		err = f.Write(ctx, func(c *Conn) (err error) {
			done, err = s.step(c)
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("open %s: %w", f.path, err)
	}
	return nil
}

// mark makes an empty file ours.
func mark(c *Conn) error {
	var id, tables int64
	if err := c.Query(func(r *Row) { id = r.Int() }, "PRAGMA application_id"); err != nil {
		return err
	}
	if id == applicationID {
		return nil
	}
	if err := c.Query(func(r *Row) { tables = r.Int() }, "SELECT count(*) FROM sqlite_schema"); err != nil {
		return err
	}
	if id != 0 || tables != 0 {
		return fmt.Errorf("it is a database of another program (application %#x, %d tables); name another file", id, tables)
	}
	return c.Script(fmt.Sprintf(`
		CREATE TABLE schema_version (name TEXT NOT NULL PRIMARY KEY, version BIGINT NOT NULL);
		PRAGMA application_id = %d`, applicationID))
}

// absent is an fs.ErrNotExist of a database.
type absent string

func (a absent) Error() string { return string(a) }

func (absent) Is(target error) bool { return target == fs.ErrNotExist }

// there checks that the tables are there, in this version.
func (s Schema) there(c *Conn) error {
	var id, have int64
	if err := c.Query(func(r *Row) { id = r.Int() }, "PRAGMA application_id"); err != nil {
		return err
	}
	if id == applicationID {
		if err := c.Query(func(r *Row) { have = r.Int() }, "SELECT version FROM schema_version WHERE name = ?", s.Name); err != nil {
			return err
		}
	}
	switch known := int64(len(s.Steps)); {
	case have == 0:
		return absent("it has no tables of " + s.Name)
	case have > known:
		return newer(s.Name, have, known)
	case have < known:
		return fmt.Errorf("its tables of %s have version %d, and this program has version %d; let a program that writes open it first", s.Name, have, known)
	}
	return nil
}

func newer(name string, have, known int64) error {
	return fmt.Errorf("its tables of %s have version %d, and this program knows %d; use a newer program", name, have, known)
}

// step makes the next step, and says whether there is none.
func (s Schema) step(c *Conn) (done bool, err error) {
	var have int64
	if err := c.Query(func(r *Row) { have = r.Int() }, "SELECT version FROM schema_version WHERE name = ?", s.Name); err != nil {
		return false, err
	}
	if have > int64(len(s.Steps)) {
		return false, newer(s.Name, have, int64(len(s.Steps)))
	}
	if have == int64(len(s.Steps)) {
		return true, nil
	}
	if err := c.Script(s.Steps[have]); err != nil {
		return false, fmt.Errorf("step %d of the tables of %s: %w", have+1, s.Name, err)
	}
	_, err = c.Exec("INSERT INTO schema_version VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET version = excluded.version", s.Name, have+1)
	return false, err
}
