package egress

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"
)

// connect makes a connection to an address of the target that was checked.
func (b *Broker) connect(ctx context.Context, t target) (*conn, error) {
	addrs, err := b.resolve(ctx, t)
	if err != nil {
		return nil, err
	}
	dialled, err := dial(ctx, addrs, t.port)
	if err != nil {
		b.log.DebugContext(ctx, "egress connection failed", "host", t.hostPort(), "err", err)
		return nil, connectError(err)
	}
	below := &wire{Conn: dialled}
	inner := net.Conn(below)
	if t.scheme == "https" {
		secure := tls.Client(below, &tls.Config{
			ServerName: t.host(), RootCAs: b.rootCAs, NextProtos: []string{"http/1.1"}, MinVersion: tls.VersionTLS12,
		})
		if err := secure.HandshakeContext(ctx); err != nil {
			_ = below.Close()
			b.log.DebugContext(ctx, "egress handshake failed", "host", t.hostPort(), "err", err)
			return nil, tlsError(err)
		}
		inner = secure
	}
	b.stats.update(func(s *Stats) { s.Connections++ })
	return newConn(inner, below, t.origin(), b.bytes, b.stats), nil
}

// resolve returns the addresses of a target. All of them were checked.
func (b *Broker) resolve(ctx context.Context, t target) ([]netip.Addr, error) {
	addrs := []netip.Addr{t.addr}
	if !t.addr.IsValid() {
		var err error
		if addrs, err = b.resolver.LookupNetIP(ctx, "ip", t.name); err != nil {
			b.log.DebugContext(ctx, "egress name not resolved", "host", t.hostPort(), "err", err)
			return nil, resolveError(err)
		}
	}
	if len(addrs) == 0 {
		return nil, fmt.Errorf("%w: no addresses", ErrResolve)
	}
	_, named := b.hosts.match(t)
	for _, addr := range addrs {
		if b.addresses.allowed(addr, named) {
			continue
		}
		b.log.DebugContext(ctx, "egress address refused", "host", t.hostPort(), "address", addr)
		detail := "the name leads to an address that is not public"
		if t.addr.IsValid() {
			detail = "the address is not public"
		}
		return nil, refuse(ReasonAddress, "ask the operator to name the host in Policy.Hosts and to add the address to Policy.Private", "%s", detail)
	}
	return addrs, nil
}

// dial tries the first addresses in turn, each for its share of the time.
func dial(ctx context.Context, addrs []netip.Addr, port uint16) (net.Conn, error) {
	const most, least = 4, 2 * time.Second
	addrs = addrs[:min(len(addrs), most)]
	var errs []error
	for i, addr := range addrs {
		var d net.Dialer
		if deadline, ok := ctx.Deadline(); ok {
			d.Timeout = max(least, time.Until(deadline)/time.Duration(len(addrs)-i))
		}
		c, err := d.DialContext(ctx, "tcp", netip.AddrPortFrom(addr.Unmap(), port).String())
		if err == nil {
			return c, nil
		}
		errs = append(errs, err)
		if ctx.Err() != nil {
			break
		}
	}
	return nil, errors.Join(errs...)
}
