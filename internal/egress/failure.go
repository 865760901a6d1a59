package egress

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"
)

// Causes with which the broker ends the context of a request.
var (
	errTimeout = errors.New("egress: Policy.Timeout is over")
	errClosed  = errors.New("egress: broker closed")
)

// The texts of the network's own errors hold addresses, and what a server sent.
// So they are reported in our words.

func resolveError(err error) error {
	if dns, ok := errors.AsType[*net.DNSError](err); ok && dns.IsNotFound {
		return fmt.Errorf("%w: no such host", ErrResolve)
	}
	return fmt.Errorf("%w: the resolver failed", ErrResolve)
}

func connectError(err error) error {
	timeout, ok := errors.AsType[net.Error](err)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("%w: connection refused", ErrConnect)
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH):
		return fmt.Errorf("%w: host unreachable", ErrConnect)
	case ok && timeout.Timeout():
		return fmt.Errorf("%w: no answer", ErrConnect)
	}
	return fmt.Errorf("%w: the host cannot be reached", ErrConnect)
}

func tlsError(err error) error {
	if _, ok := errors.AsType[x509.HostnameError](err); ok {
		return fmt.Errorf("%w: the certificate is for another host", ErrTLS)
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return fmt.Errorf("%w: the certificate's authority is not trusted", ErrTLS)
	}
	if invalid, ok := errors.AsType[x509.CertificateInvalidError](err); ok {
		if invalid.Reason == x509.Expired {
			return fmt.Errorf("%w: the certificate has expired or is not valid yet", ErrTLS)
		}
		return fmt.Errorf("%w: the certificate is not valid", ErrTLS)
	}
	return fmt.Errorf("%w: the handshake failed", ErrTLS)
}

// exchangeError explains why a request that was sent has no whole response.
func (b *Broker) exchangeError(c *conn) error {
	switch {
	case c.over.Load():
		return b.overBudget()
	case c.tooLong:
		return refuse(ReasonHeadersTooLarge, "ask the operator to raise Policy.HeaderBytes",
			"the response's headers are larger than %d bytes", b.policy.HeaderBytes)
	case !c.answered:
		return fmt.Errorf("%w: the server closed the connection without an answer", ErrConnect)
	}
	return fmt.Errorf("%w: it ended too early or is not valid HTTP", ErrProtocol)
}

func (b *Broker) overBudget() *Refusal {
	return refuse(ReasonBytes, "wait a minute, or ask the operator to raise Policy.BytesPerMinute",
		"the budget of %d bytes a minute is used up", b.policy.BytesPerMinute)
}

// ended describes how the context of a request ended, nil if it did not. A connection
// attempt ends at the same deadline, and may notice it a moment earlier.
func (b *Broker) ended(ctx context.Context) error {
	const moment = 5 * time.Millisecond
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < moment {
		<-ctx.Done()
	}
	if ctx.Err() == nil {
		return nil
	}
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errTimeout):
		return refuse(ReasonTimeout, "ask the operator to raise Policy.Timeout", "it took longer than %v", b.policy.Timeout)
	case errors.Is(cause, errClosed):
		return refuse(ReasonClosed, "", "the broker was closed")
	}
	return ctx.Err()
}
