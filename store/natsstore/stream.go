package natsstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/nats-io/nats.go/jetstream"
)

func (s *Store) openStream(ctx context.Context) (err error) {
	s.stream, err = s.js.Stream(ctx, s.cfg.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		s.stream, err = s.js.CreateStream(ctx, s.wanted())
		if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
			s.stream, err = s.js.Stream(ctx, s.cfg.Name)
		}
	}
	if err != nil {
		return fmt.Errorf("natsstore: %w", err)
	}
	return s.checkStream(s.stream.CachedInfo().Config)
}

// wanted keeps the latest record of each subject for ever. Reads go to the leader: others may
// run behind.
func (s *Store) wanted() jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: s.cfg.Name, Subjects: []string{s.names.all()}, Storage: jetstream.FileStorage, Replicas: s.cfg.Replicas,
		Retention: jetstream.LimitsPolicy, Discard: jetstream.DiscardNew, MaxMsgsPerSubject: 1, AllowMsgTTL: true,
	}
}

// checkStream refuses a stream that would lose records or give old ones.
func (s *Store) checkStream(c jetstream.StreamConfig) error {
	switch {
	case c.Storage != jetstream.FileStorage:
		return errors.New("it is in memory; delete it, or take another Config.Name")
	case c.MaxMsgsPerSubject != 1 || c.Retention != jetstream.LimitsPolicy || len(c.Subjects) != 1 || c.Subjects[0] != s.names.all():
		return errors.New("it was not made for a mailbox; take another Config.Name")
	case c.MaxAge != 0 || c.MaxMsgs > 0 || (c.MaxBytes > 0 && c.Discard != jetstream.DiscardNew):
		return errors.New("its limits drop old messages; set max_age and max_msgs to 0, and discard to new")
	case c.AllowDirect:
		return errors.New("replicas that run behind may answer; set allow_direct to false")
	case !c.AllowMsgTTL:
		return errors.New("messages cannot have a time to live; set allow_msg_ttl to true (servers from 2.11)")
	case c.PersistMode != jetstream.DefaultPersistMode:
		return errors.New("it is not written at once; set persist_mode to default")
	}
	return nil
}

// checkServers warns about what may lose acknowledged records.
func (s *Store) checkServers(ctx context.Context) {
	info := s.stream.CachedInfo()
	if info.Config.Replicas < minReplicas {
		s.cfg.Logger.WarnContext(ctx, "natsstore_not_replicated", "stream", s.cfg.Name, "replicas", info.Config.Replicas,
			"hint", "the loss of a server loses the mailbox; use a cluster of three and replicas 3")
	}
	if len(s.cfg.Monitor) == 0 {
		s.cfg.Logger.WarnContext(ctx, "natsstore_sync_unknown", "stream", s.cfg.Name,
			"hint", "a power cut loses what was acknowledged unless jetstream has sync_interval: always; set Config.Monitor to check")
	}
	for _, address := range s.cfg.Monitor {
		always, err := s.syncs(ctx, address)
		switch {
		case err != nil:
			s.cfg.Logger.WarnContext(ctx, "natsstore_sync_unknown", "server", withoutUser(address), "error", redact(address, err))
		case !always:
			s.cfg.Logger.WarnContext(ctx, "natsstore_not_synced", "server", withoutUser(address),
				"hint", "a power cut loses what was acknowledged; set sync_interval: always in the jetstream block of the server")
		}
	}
}

const (
	minReplicas = 3
	maxReport   = 1 << 20
)

// syncs asks the monitoring of a server whether it writes before it acknowledges.
func (s *Store) syncs(ctx context.Context, address string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Wait)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(address, "/")+"/jsz", http.NoBody)
	if err != nil {
		return false, errors.New("natsstore: Config.Monitor has an address that is no URL")
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return false, fmt.Errorf("natsstore: monitoring: %w", err)
	}
	defer answer.Body.Close()
	var report struct {
		Config struct {
			SyncAlways bool `json:"sync_always"`
		} `json:"config"`
	}
	if answer.StatusCode != http.StatusOK {
		return false, fmt.Errorf("natsstore: monitoring answers %s", answer.Status)
	}
	if err := json.NewDecoder(io.LimitReader(answer.Body, maxReport)).Decode(&report); err != nil {
		return false, fmt.Errorf("natsstore: monitoring: %w", err)
	}
	return report.Config.SyncAlways, nil
}

func withoutUser(address string) string { return withoutSecrets(address, address) }
