package session

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
)

// maxLine bounds a line, in bytes.
const maxLine = 256 << 20

// errStop ends the reading of lines early.
var errStop = errors.New("stop")

// lines reads a file line by line, without what a crash left at its end.
func (d *Dir) lines(name string, each func(n int, line []byte) error) error {
	f, err := d.root.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	r := bufio.NewReaderSize(f, 1<<16)
	for n := 1; ; n++ {
		line, err := readLine(r)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = each(n, line)
		}
		if errors.Is(err, errStop) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// readLine returns a line without its end, and io.EOF for what has none.
func readLine(r *bufio.Reader) ([]byte, error) {
	var out []byte
	for {
		part, err := r.ReadSlice('\n')
		out = append(out, part...)
		switch {
		case err == nil:
			return out[:len(out)-1], nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		case len(out) > maxLine:
			return nil, fmt.Errorf("a line is longer than %d bytes", maxLine)
		}
	}
}

func decode(line []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(line))
	return dec.Decode(into)
}

// write appends values as lines, behind the last whole line, and a head first if there
// is none. The caller holds the Dir.
func (d *Dir) write(name string, head any, values ...any) error {
	if err := d.root.MkdirAll(path.Dir(name), 0o700); err != nil {
		return err
	}
	f, err := d.root.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	end, err := whole(f)
	if err == nil {
		if end == 0 && head != nil {
			values = append([]any{head}, values...)
		}
		var text []byte
		if text, err = encode(values); err == nil {
			_, err = f.WriteAt(text, end)
		}
	}
	return errors.Join(err, f.Close())
}

func encode(values []any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	for _, v := range values {
		if err := enc.Encode(v); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}

// whole cuts off what a crash left behind the last line, and returns the size.
func whole(f *os.File) (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	size := info.Size()
	buf := make([]byte, 4096)
	for end := size; end > 0; {
		n := min(end, int64(len(buf)))
		if _, err := f.ReadAt(buf[:n], end-n); err != nil {
			return 0, err
		}
		if i := bytes.LastIndexByte(buf[:n], '\n'); i >= 0 {
			end = end - n + int64(i) + 1
			if end == size {
				return size, nil
			}
			return end, f.Truncate(end)
		}
		end -= n
	}
	return 0, f.Truncate(0)
}
