package term

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// Table collects lines and remembers the first failure.
type Table struct {
	tw  *tabwriter.Writer
	err error
}

// NewTable writes to out, in lines that fit a terminal if it is one.
func NewTable(out io.Writer) *Table {
	return &Table{tw: tabwriter.NewWriter(fitting(out), 0, 8, 2, ' ', 0)}
}

// End writes the table.
func (t *Table) End() error {
	if t.err != nil {
		return t.err
	}
	return t.tw.Flush()
}

// Row adds a line, whose cells are separated by tabs.
func (t *Table) Row(format string, args ...any) {
	if t.err == nil {
		_, t.err = fmt.Fprintf(t.tw, format+"\n", args...)
	}
}

// Head adds an empty line, a title and the names of the columns.
func (t *Table) Head(title string, columns ...string) {
	t.Row("\n%s", title)
	if len(columns) > 0 {
		t.Row("  %s", strings.Join(columns, "\t"))
	}
}

// Columns prints a table without those columns behind the first ones in which every cell is 0, - or empty.
func (t *Table) Columns(title string, first int, names []string, rows [][]string) {
	var used []int
	for c := range names {
		if c < first || slices.ContainsFunc(rows, func(r []string) bool { return r[c] != "0" && r[c] != "-" && r[c] != "" }) {
			used = append(used, c)
		}
	}
	pick := func(cells []string) string {
		out := make([]string, len(used))
		for i, c := range used {
			out[i] = cells[c]
		}
		return strings.Join(out, "\t")
	}
	t.Head(title, pick(names))
	for _, r := range rows {
		t.Row("  %s", pick(r))
	}
}
