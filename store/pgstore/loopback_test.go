package pgstore_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mortise-dev/mortise/internal/pgtest"
	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/store/pgstore"
)

// certificate is one of its own authority for 127.0.0.1.
func certificate(t *testing.T) (cert, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "mortise test"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})
}

// file writes what is not secret, and returns its path.
func file(t *testing.T, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "root.crt")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func loopback(t *testing.T, cert, key []byte) *pgtest.Server {
	t.Helper()
	s, err := pgtest.Loopback(t.Context(), cert, key, "fsync=off")
	pgtest.Need(t, err)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// carriedOut submits a run and waits for its end: statements, transactions and notifications all go that way.
func carriedOut(t *testing.T, c pgstore.Config) {
	t.Helper()
	s := open(t, c)
	m, err := mailbox.New(t.Context(), mailbox.Config{Store: s, Runtime: instant{}})
	if err == nil {
		err = m.Start(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	sub, err := m.SubmitBackground(t.Context(), mailbox.Request{Thread: "t", Messages: []mailbox.Input{{Data: []byte("x")}}})
	if err != nil {
		t.Fatal(err)
	}
	if d, err := m.Await(t.Context(), sub.Dispatch); err != nil || d.Response != "done" {
		t.Errorf("dispatch came to %q: %v", d.Response, err)
	}
}

type instant struct{}

func (instant) Run(context.Context, *mailbox.Job) (mailbox.Result, error) {
	return mailbox.Result{Response: "done"}, nil
}

// connected counts the connections over TCP of a server, by whether they are encrypted.
func connected(t *testing.T, s *pgtest.Server) (plain, encrypted int) {
	t.Helper()
	conn := connect(t, pgstore.Config{URL: s.URL()})
	rows, err := conn.Query(t.Context(), `SELECT ssl, count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE host(client_addr) = '127.0.0.1' GROUP BY 1`)
	if err != nil {
		t.Fatal(err)
	}
	var ssl bool
	var n int
	if _, err := pgx.ForEachRow(rows, []any{&ssl, &n}, func() error {
		if ssl {
			encrypted = n
		} else {
			plain = n
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return plain, encrypted
}

func refusedWith(t *testing.T, address, want string) {
	t.Helper()
	s, err := pgstore.Open(t.Context(), pgstore.Config{URL: address})
	if err == nil {
		_ = s.Close(t.Context())
	}
	if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "n0t-the") {
		t.Errorf("opened: %v; want %q", err, want)
	}
}

// TestLoopback_password holds that a mailbox works over TCP, and that the server asks for the password there.
func TestLoopback_password(t *testing.T) {
	t.Parallel()
	s := loopback(t, nil, nil)
	address := s.LoopbackURL(url.Values{"sslmode": {"disable"}})
	carriedOut(t, pgstore.Config{URL: address})
	if plain, encrypted := connected(t, s); plain == 0 || encrypted > 0 {
		t.Errorf("%d plain connections over TCP, %d encrypted", plain, encrypted)
	}
	refusedWith(t, strings.Replace(address, s.Password(), "n0t-the-password", 1), "password authentication failed")
	refusedWith(t, s.LoopbackURL(url.Values{"sslmode": {"require"}}), "refused TLS")
}

// TestLoopback_tls holds that it works over TLS, whose certificate is checked, and that nothing goes unencrypted then.
func TestLoopback_tls(t *testing.T) {
	t.Parallel()
	cert, key := certificate(t)
	s := loopback(t, cert, key)
	carriedOut(t, pgstore.Config{URL: s.LoopbackURL(url.Values{"sslmode": {"verify-full"}, "sslrootcert": {file(t, cert)}})})
	if plain, encrypted := connected(t, s); plain > 0 || encrypted == 0 {
		t.Errorf("%d plain connections over TCP, %d encrypted", plain, encrypted)
	}
	other, _ := certificate(t)
	refusedWith(t, s.LoopbackURL(url.Values{"sslmode": {"verify-full"}, "sslrootcert": {file(t, other)}}), "certificate")
	refusedWith(t, s.LoopbackURL(url.Values{"sslmode": {"disable"}}), "no encryption")
}
