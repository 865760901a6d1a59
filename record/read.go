package record

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// maxBytes bounds what is read of a file.
const maxBytes = 256 << 20

// List implements [Store].
func (f *Folder) List(n int) ([]Known, error) {
	files, err := f.files()
	if err != nil {
		return nil, err
	}
	var out []Known
	for _, each := range files {
		if len(out) >= n {
			break
		}
		if start, ok := f.first(each.run); ok {
			out = append(out, Known{ID: each.run, Start: start})
		}
	}
	return out, nil
}

// first reads the first line of a record.
func (f *Folder) first(run string) (Start, bool) {
	in, err := f.root.Open(run + suffix)
	if err != nil {
		return Start{}, false
	}
	defer in.Close()
	var l Line
	err = json.NewDecoder(io.LimitReader(in, MaxLine)).Decode(&l)
	if err != nil || l.Start == nil {
		return Start{}, false
	}
	return *l.Start, true
}

// Load implements [Store].
func (f *Folder) Load(id string) (*Run, error) {
	run, err := f.find(id)
	if err != nil {
		return nil, err
	}
	in, err := f.root.Open(run + suffix)
	if err != nil {
		return nil, fmt.Errorf("record: run %s: %w", run, err)
	}
	defer in.Close()
	out, err := parse(io.LimitReader(in, maxBytes))
	if err != nil {
		return nil, fmt.Errorf("record: run %s: %w", run, err)
	}
	return out, nil
}

// find returns the whole id.
func (f *Folder) find(id string) (string, error) {
	files, err := f.files()
	if err != nil {
		return "", err
	}
	names := make([]string, len(files))
	for i, each := range files {
		names[i] = each.run
	}
	return Find(id, names, f.dir)
}

// parse reads a record. Lines that are not ours are counted.
func parse(in io.Reader) (*Run, error) {
	out := &Run{}
	lines := bufio.NewReaderSize(in, 64<<10)
	for {
		text, err := readLine(lines)
		if len(text) > 0 {
			out.Take(text)
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	if len(out.Starts) == 0 {
		return nil, fmt.Errorf("it is not a record of the format %s", Schema)
	}
	return out, nil
}

// readLine returns a line without its end. One that is too long comes back as
// something that is no record.
func readLine(in *bufio.Reader) ([]byte, error) {
	var out []byte
	long := false
	for {
		part, more, err := in.ReadLine()
		if !long {
			out = append(out, part...)
		}
		if len(out) > MaxLine {
			out, long = []byte("too long"), true
		}
		if err != nil || !more {
			return out, err
		}
	}
}
