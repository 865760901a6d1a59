// Package hostcall turns the codes of the host's functions into errors.
package hostcall
