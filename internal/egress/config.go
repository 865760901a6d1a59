package egress

import (
	"cmp"
	"context"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"time"
)

// Resolver finds the addresses of a name, as [net.Resolver] does.
type Resolver interface {
	// LookupNetIP is called with network "ip" and a name in lower case without
	// a dot at its end. It must return when ctx ends.
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Config makes a [Broker]. The zero Config grants nothing.
type Config struct {
	// Policy is what is granted.
	Policy Policy
	// Secrets are the credentials that handles name. Names have letters, digits,
	// dots, hyphens and underscores.
	Secrets map[string]Secret
	// Resolver defaults to net.DefaultResolver.
	Resolver Resolver
	// RootCAs are the authorities to trust. Default those of the system.
	RootCAs *x509.CertPool
	// UserAgent is sent where the plugin sends none. Default "mortise".
	UserAgent string
	// Budget is shared with other brokers. Default one that is not.
	Budget *Budget
	// Now is the clock of the budgets. Default time.Now.
	Now func() time.Time
	// Logger gets the first refusal of each reason as a warning, and the others
	// and faults of the network for debugging: hosts and addresses, never paths,
	// headers or bodies. Default none.
	Logger *slog.Logger
}

// New returns a broker, or an error that names the field that is wrong.
func New(cfg Config) (*Broker, error) {
	b, err := newBroker(cfg)
	if err != nil {
		return nil, fmt.Errorf("egress: %w", err)
	}
	return b, nil
}

func newBroker(cfg Config) (*Broker, error) {
	policy, err := cfg.Policy.withDefaults()
	if err != nil {
		return nil, err
	}
	hosts, err := parseHosts("Policy.Hosts", policy.Hosts)
	if err != nil {
		return nil, err
	}
	addresses, err := newAddresses(policy.Private)
	if err != nil {
		return nil, err
	}
	if err := policy.reach(hosts, addresses); err != nil {
		return nil, err
	}
	vault, err := newVault(cfg.Secrets)
	if err != nil {
		return nil, err
	}
	b := &Broker{
		policy: policy, hosts: hosts, addresses: addresses, vault: vault,
		resolver: cfg.Resolver, rootCAs: cfg.RootCAs,
		userAgent: cmp.Or(cfg.UserAgent, "mortise"),
		log:       cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler)),
		slots:     make(chan struct{}, policy.Concurrent),
		stats:     newCounters(),
	}
	if !isFieldValue(b.userAgent) {
		return nil, fmt.Errorf("Config.UserAgent %s has control characters; leave them out", quote(b.userAgent))
	}
	if b.resolver == nil {
		b.resolver = net.DefaultResolver
	}
	now := cfg.Now
	if now == nil {
		now = time.Now
	}
	b.vault.now = now
	budget := cmp.Or(cfg.Budget, &Budget{})
	b.rate = &bucket{now: now, size: int64(policy.PerMinute), level: &budget.rate}
	b.bytes = &bucket{now: now, size: policy.BytesPerMinute, level: &budget.bytes}
	b.pool = newPool(policy.Concurrent)
	return b, nil
}
