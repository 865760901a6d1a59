package engine

import (
	"fmt"
)

// ErrorCode is what an import of "mortise:host/1" returns when it could not do
// what the guest asked for. The guest continues; host_error has the text.
type ErrorCode int32

// Codes that a guest may see. They are part of the contract with guests.
const (
	// CodeDenied means that the operator's grant does not allow it.
	CodeDenied ErrorCode = -1
	// CodeQuota means that a quota is used up.
	CodeQuota ErrorCode = -2
	// CodeTooLarge means that the request, or the answer to it, is too large.
	CodeTooLarge ErrorCode = -3
	// CodeInvalid means that the request makes no sense, such as an empty key.
	CodeInvalid ErrorCode = -4
	// CodeFailed means that it was allowed and went wrong.
	CodeFailed ErrorCode = -5
	// CodeTimeout means that it took longer than the grant allows. When the call
	// itself is out of time, it ends and there is no code.
	CodeTimeout ErrorCode = -6
)

// String returns the name of the code.
func (c ErrorCode) String() string {
	switch c {
	case CodeDenied:
		return "denied"
	case CodeQuota:
		return "quota"
	case CodeTooLarge:
		return "too large"
	case CodeInvalid:
		return "invalid"
	case CodeFailed:
		return "failed"
	case CodeTimeout:
		return "timeout"
	}
	return fmt.Sprintf("code %d", int32(c))
}
