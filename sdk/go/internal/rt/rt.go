// Package rt runs the functions of a guest: it moves input and output across
// the border and turns errors and panics into error texts.
package rt

import (
	"strconv"

	mortise "github.com/mortise-dev/mortise/sdk/go"
)

// Handler answers one export: it decodes the input and encodes the output. The
// input's memory is not used again, so parts of it may be kept.
type Handler func(input string, out *mortise.Encoder) error

// Call runs h natively, as a host would run the export.
func Call(h Handler, input []byte) ([]byte, error) {
	var e mortise.Encoder
	if err := protect(h, string(input), &e); err != nil {
		return nil, err
	}
	return e.Bytes()
}

// protect runs h and turns a panic into an error.
func protect(h Handler, input string, e *mortise.Encoder) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = Error("guest panicked: " + text(p))
		}
	}()
	return h(input, e)
}

// Error is an error text. It saves guests the errors package.
type Error string

// Error returns the text.
func (e Error) Error() string { return string(e) }

// text renders the value of a panic without package fmt.
func text(p any) string {
	switch p := p.(type) {
	case error:
		return p.Error()
	case string:
		return p
	case interface{ String() string }:
		return p.String()
	case int:
		return strconv.Itoa(p)
	}
	return "with a value that is neither an error nor text"
}

// Describe writes d, with the range of contract versions of this SDK when d
// has none.
func Describe(d mortise.Description, out *mortise.Encoder) {
	if d.ABI == (mortise.VersionRange{}) {
		d.ABI = mortise.VersionRange{Min: mortise.MinVersion, Max: mortise.Version}
	}
	d.MarshalTo(out)
}
