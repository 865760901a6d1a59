package outbox

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strconv"
	"time"
)

// maxLine bounds one operation in the journal, in bytes.
const maxLine = 16 << 20

// checksum is how many characters the checksum of a line has; maxHeader is more
// than what a line has beside its JSON.
const (
	checksum  = 8
	maxHeader = 32
)

// ErrCorrupt is a journal that was changed or damaged other than by a crash.
var ErrCorrupt = errors.New("journal is corrupt")

// errTorn is a line that a crash cut short. It can only be the last.
var errTorn = errors.New("torn line")

func milli(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

// encode writes an operation as a line: a checksum, its length, JSON.
func encode(o op) ([]byte, error) {
	data, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	if len(data) > maxLine {
		return nil, fmt.Errorf("%w: %d bytes, at most %d are allowed", ErrTooLarge, len(data), maxLine)
	}
	line := make([]byte, 0, maxHeader+len(data))
	line = fmt.Appendf(line, "%08x %d ", crc32.ChecksumIEEE(data), len(data))
	line = append(line, data...)
	return append(line, '\n'), nil
}

// decode reads a line without its end.
func decode(line []byte) (o op, err error) {
	sum, rest, _ := bytes.Cut(line, []byte(" "))
	length, data, ok := bytes.Cut(rest, []byte(" "))
	if !ok || len(sum) != checksum {
		return op{}, fmt.Errorf("%w: no checksum", errTorn)
	}
	want, err := strconv.ParseUint(string(sum), 16, 32)
	n, lengthErr := strconv.Atoi(string(length))
	switch {
	case lengthErr == nil && len(data) > n:
		// A crash makes lines shorter, never longer.
		return op{}, fmt.Errorf("%w: a line of %d bytes that should have %d", ErrCorrupt, len(data), n)
	case err != nil || lengthErr != nil || want != uint64(crc32.ChecksumIEEE(data)):
		return op{}, fmt.Errorf("%w: wrong checksum", errTorn)
	}
	if err := json.Unmarshal(data, &o); err != nil {
		return op{}, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	switch {
	case o.Kind == opNext && o.Thread == "":
	case o.Thread == "":
		return op{}, fmt.Errorf("%w: an operation without a thread", ErrCorrupt)
	case o.Kind != opAppend && o.Kind != opRemove && o.Kind != opForget:
		return op{}, fmt.Errorf("%w: unknown operation %.40q", ErrCorrupt, o.Kind)
	}
	return o, nil
}

// replay applies a journal to an index. It returns how many bytes are whole. What
// follows them is what a crash left of the last write; anything else that cannot
// be read is [ErrCorrupt].
func replay(r io.Reader, x *index) (whole int64, err error) {
	in := bufio.NewReaderSize(r, 64<<10)
	for {
		line, err := readLine(in)
		if errors.Is(err, io.EOF) {
			return whole, nil // an empty rest, or one without an end
		}
		if err != nil {
			return whole, err
		}
		o, err := decode(line[:len(line)-1])
		if errors.Is(err, errTorn) {
			// A crash can leave garbage at the end, but nothing whole behind it.
			if _, next := readLine(in); !errors.Is(next, io.EOF) {
				return whole, fmt.Errorf("%w: at byte %d: %w", ErrCorrupt, whole, err)
			}
			return whole, nil
		}
		if err != nil {
			return whole, fmt.Errorf("at byte %d: %w", whole, err)
		}
		x.apply(o)
		whole += int64(len(line))
	}
}

// readLine reads a line with its end. It returns io.EOF when the end is missing.
func readLine(in *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case err == nil:
			return line, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return line, err
		case len(line) > maxLine+maxHeader:
			return nil, fmt.Errorf("%w: a line of more than %d bytes", ErrCorrupt, maxLine)
		}
	}
}
