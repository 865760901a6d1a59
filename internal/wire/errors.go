package wire

import (
	"errors"
	"strconv"
)

// ErrValue is wrapped by the errors of Marshal: the value is not one that the
// contract knows.
var ErrValue = errors.New("value is not part of the contract")

// DecodeError has the place and reason of a refusal. It never holds content.
type DecodeError struct {
	Format Format
	// Offset is the byte at which the input is wrong, -1 when Path says it.
	Offset int
	// Path names the field, as in "effects[2].messages[0].role". It is empty for
	// faults of the encoding itself.
	Path string
	// What is wrong.
	What string
}

// Error names the place and the fault.
func (e *DecodeError) Error() string {
	text := "wire: " + string(e.Format)
	if e.Offset >= 0 {
		text += ": byte " + strconv.Itoa(e.Offset)
	}
	if e.Path != "" {
		text += ": " + e.Path
	}
	return text + ": " + e.What
}

// under puts a step in front of the path of err.
func under(err error, step string) error {
	var d *DecodeError
	if !errors.As(err, &d) {
		return err
	}
	if d.Path != "" && d.Path[0] != '[' {
		step += "."
	}
	d.Path = step + d.Path
	return d
}
