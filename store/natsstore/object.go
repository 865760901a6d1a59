package natsstore

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"
)

// object puts a JSON object together, without the fields that are zero. Heads are written thrice in a cycle: encoding/json takes several
// times as long, and reads what this writes.
type object struct {
	out []byte
	err error
}

// name begins a field. Names need no escapes.
func (o *object) name(name string) {
	if n := len(o.out); o.out[n-1] != '{' {
		o.out = append(o.out, ',')
	}
	o.out = append(append(append(o.out, '"'), name...), `":`...)
}

// object writes an object that add fills.
func (o *object) object(add func(*object)) {
	o.out = append(o.out, '{')
	add(o)
	o.out = append(o.out, '}')
}

// field writes a field that is an object.
func (o *object) field(name string, add func(*object)) {
	o.name(name)
	o.object(add)
}

func (o *object) text(name, value string) {
	if value != "" {
		o.name(name)
		o.string(value)
	}
}

func (o *object) string(value string) {
	if !plain(value) {
		data, err := json.Marshal(value)
		o.out, o.err = append(o.out, data...), firstOf(o.err, err)
		return
	}
	o.out = append(append(append(o.out, '"'), value...), '"')
}

// plain says that a text needs no escapes.
func plain(text string) bool {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

func (o *object) uint(name string, value uint64) {
	if value != 0 {
		o.name(name)
		o.out = strconv.AppendUint(o.out, value, 10)
	}
}

func (o *object) int(name string, value int64) {
	if value != 0 {
		o.name(name)
		o.out = strconv.AppendInt(o.out, value, 10)
	}
}

func (o *object) bool(name string, value bool) {
	if value {
		o.name(name)
		o.out = append(o.out, "true"...)
	}
}

func (o *object) time(name string, value time.Time) {
	if value.IsZero() {
		return
	}
	o.name(name)
	var err error
	o.out, err = value.AppendText(append(o.out, '"'))
	o.out, o.err = append(o.out, '"'), firstOf(o.err, err)
}

func (o *object) bytes(name string, value []byte) {
	if len(value) > 0 {
		o.name(name)
		o.out = append(base64.StdEncoding.AppendEncode(append(o.out, '"'), value), '"')
	}
}

// list writes a list of n, unless it is empty.
func (o *object) list(name string, n int, add func(i int)) {
	if n == 0 {
		return
	}
	o.name(name)
	o.out = append(o.out, '[')
	for i := range n {
		if i > 0 {
			o.out = append(o.out, ',')
		}
		add(i)
	}
	o.out = append(o.out, ']')
}

// keyed writes a field whose name may need escapes.
func (o *object) keyed(key string, add func(*object)) {
	if n := len(o.out); o.out[n-1] != '{' {
		o.out = append(o.out, ',')
	}
	o.string(key)
	o.out = append(o.out, ':')
	add(o)
}

// done is the object.
func (o *object) done() ([]byte, error) {
	if o.err != nil {
		return nil, fmt.Errorf("natsstore: encode: %w", o.err)
	}
	return o.out, nil
}

func firstOf(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

func number(n uint64) string { return strconv.FormatUint(n, 10) }

// together encodes an object that add fills, of about size bytes.
func together(size int, add func(*object)) ([]byte, error) {
	o := &object{out: make([]byte, 0, size)}
	o.object(add)
	return o.done()
}
