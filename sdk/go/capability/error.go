package capability

import "strconv"

// Code is the reason why a host did not do what it was asked for. It is an error, for errors.Is.
type Code int32

// Codes of the contract.
const (
	// Denied means that the operator's grant does not allow it.
	Denied Code = -1
	// Quota means that a quota is used up.
	Quota Code = -2
	// TooLarge means that the request, or the answer to it, is too large.
	TooLarge Code = -3
	// Invalid means that the request makes no sense, such as an empty key.
	Invalid Code = -4
	// Failed means that it was allowed and went wrong.
	Failed Code = -5
	// Timeout means that it took longer than the grant allows.
	Timeout Code = -6
)

// Error implements error.
func (c Code) Error() string {
	switch c {
	case Denied:
		return "denied"
	case Quota:
		return "quota"
	case TooLarge:
		return "too large"
	case Invalid:
		return "invalid"
	case Failed:
		return "failed"
	case Timeout:
		return "timeout"
	}
	return "code " + strconv.Itoa(int(c))
}

// Error is the answer of a host that did not do what it was asked for.
type Error struct {
	Code Code
	// Text is the host's own, for the author and the operator. It never holds a secret.
	Text string
}

// Error implements error.
func (e *Error) Error() string {
	if e.Text == "" {
		return e.Code.Error()
	}
	return e.Text
}

// Unwrap returns the code.
func (e *Error) Unwrap() error { return e.Code }
