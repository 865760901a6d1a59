package egress_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mortise-dev/mortise/internal/egress"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// certificate is for example.com and the names below it, and signs itself.
var certificate = sync.OnceValue(func() tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		DNSNames: []string{"example.com", "*.example.com"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		panic(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		panic(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
})

// names is a resolver with a script. Names that are not in it do not exist.
type names map[string][]string

func (n names) LookupNetIP(_ context.Context, network, host string) ([]netip.Addr, error) {
	if network != "ip" {
		return nil, errors.New("network is not ip")
	}
	texts, ok := n[host]
	if !ok {
		return nil, &net.DNSError{Err: "no such host", Name: host, Server: "10.9.8.7:53", IsNotFound: true}
	}
	return parse(texts), nil
}

func parse(texts []string) []netip.Addr {
	var out []netip.Addr
	for _, text := range texts {
		out = append(out, netip.MustParseAddr(text))
	}
	return out
}

// loopback leads the names of the tests to this machine.
func loopback() names {
	n := names{}
	for _, label := range []string{"a", "b", "c"} {
		n[label+".example.com"] = []string{"127.0.0.1"}
	}
	return n
}

// broker makes a broker that may talk to servers of the test.
func broker(tb testing.TB, change func(c *egress.Config)) *egress.Broker {
	tb.Helper()
	roots := x509.NewCertPool()
	roots.AddCert(certificate().Leaf)
	cfg := egress.Config{
		Policy: egress.Policy{
			Hosts:   []string{"*.example.com:*"},
			Private: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
			Plain:   true,
		},
		RootCAs:  roots,
		Resolver: loopback(),
	}
	if change != nil {
		change(&cfg)
	}
	b, err := egress.New(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(b.Close)
	return b
}

// serve starts a server and returns the base URL of it under the name.
func serve(tb testing.TB, scheme, name string, handler http.HandlerFunc) string {
	tb.Helper()
	s := httptest.NewUnstartedServer(handler)
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	if scheme == "https" {
		s.TLS = &tls.Config{Certificates: []tls.Certificate{certificate()}, MinVersion: tls.VersionTLS12}
		s.StartTLS()
	} else {
		s.Start()
	}
	tb.Cleanup(s.Close)
	return scheme + "://" + name + s.URL[strings.LastIndexByte(s.URL, ':'):]
}

// raw starts a plain server that is not HTTP's: each connection is given to
// handle once a request's headers were read, and closed when that returns.
func raw(tb testing.TB, handle func(c net.Conn)) string {
	tb.Helper()
	l, err := new(net.ListenConfig).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	var conns []net.Conn
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			conns = append(conns, c)
			mu.Unlock()
			wg.Go(func() {
				defer func() { _ = c.Close() }()
				if readHead(c) == nil {
					handle(c)
				}
			})
		}
	})
	tb.Cleanup(func() {
		_ = l.Close()
		mu.Lock()
		for _, c := range conns {
			_ = c.Close()
		}
		mu.Unlock()
		wg.Wait()
	})
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return "http://a.example.com:" + port
}

// readHead reads until the end of the headers.
func readHead(c net.Conn) error {
	var head []byte
	for one := make([]byte, 1); !strings.HasSuffix(string(head), "\r\n\r\n"); {
		if _, err := io.ReadFull(c, one); err != nil {
			return err
		}
		head = append(head, one...)
	}
	return nil
}

// get makes a request that must succeed.
func get(tb testing.TB, b *egress.Broker, req egress.Request) *egress.Response {
	tb.Helper()
	resp, err := b.Do(tb.Context(), req)
	if err != nil {
		tb.Fatalf("Do(%s): %v", req.URL, err)
	}
	return resp
}

// refused makes a request that must be refused for a reason.
func refused(tb testing.TB, b *egress.Broker, req egress.Request, want egress.Reason) *egress.Refusal {
	tb.Helper()
	resp, err := b.Do(tb.Context(), req)
	r, ok := errors.AsType[*egress.Refusal](err)
	if !ok || r.Reason != want {
		tb.Fatalf("Do(%s) = %v, %v; want a refusal for %s", req.URL, resp, err, want)
	}
	if r.Detail == "" || !strings.Contains(r.Error(), string(want)) {
		tb.Fatalf("the refusal says nothing: %q", r.Error())
	}
	return r
}

// secret is a value that never changes.
func secret(value string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) { return value, nil }
}

// hidden fails when a text contains what must be hidden.
func hidden(tb testing.TB, text string, secrets ...string) {
	tb.Helper()
	for _, s := range secrets {
		if strings.Contains(text, s) {
			tb.Errorf("%q tells %q", text, s)
		}
	}
}
