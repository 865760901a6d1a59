package jet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// errTwins and errDeaf are that a server answers as the leader of a stream that may not be one any more: what it says may be old.
var (
	errTwins = errors.New("two servers answer as leaders of the stream")
	errDeaf  = errors.New("a server answers as the leader of the stream that has not heard of a majority lately")
)

// Servers hear of each other every second, and elect another leader after 4 s of silence at least. A leader that has not heard of a majority
// for 10 s gives up, and looks every 10 s (nats-server 2.15, server/raft.go).
const (
	// silence is when a server has not been heard of lately, and forgotten when it has given up if it was the leader.
	silence   = 3 * time.Second
	forgotten = 30 * time.Second
	// grace is how long to wait for another leader if there may be one.
	grace = 200 * time.Millisecond
)

// alone does what only the leader can do, and fails if a server that is not may answer questions: a leader that was cut off is reached
// by clients some seconds before it hears that there is another one, since servers talk to each other over connections of their own. It
// tells itself by those that it has not heard of. If the leader has heard of all others, they know that it is the leader; if one of them is
// silent for less time than leaders take to give up, that one gets some time to answer.
func (s *Stream) alone(ctx context.Context, act func(context.Context) error) error {
	nc := s.link.JS.Conn()
	answers, err := nc.SubscribeSync(nc.NewInbox())
	if err != nil {
		return fmt.Errorf("natsstore: %w", err)
	}
	defer func() { _ = answers.Unsubscribe() }() // the connection is closed, or it is gone already
	if err := nc.PublishRequest(jetstream.DefaultAPIPrefix+"STREAM.INFO."+s.CachedInfo().Config.Name, answers.Subject, nil); err != nil {
		return fmt.Errorf("natsstore: %w", err)
	}
	if err := act(ctx); err != nil {
		return err
	}
	return heard(ctx, answers)
}

// heard takes the answers of those that lead a stream, until it is certain whether there is one.
func heard(ctx context.Context, answers *nats.Subscription) error {
	var list []report
	for waited := false; ; {
		n, _, err := answers.Pending()
		if err != nil {
			return fmt.Errorf("natsstore: %w", err)
		}
		if n == 0 && len(list) > 0 {
			certain, err := judge(list)
			if certain || waited || err != nil {
				return err
			}
			waited = true
			pause(ctx, answers)
			continue
		}
		m, err := answers.NextMsgWithContext(ctx)
		if err != nil {
			return fmt.Errorf("natsstore: %w", err)
		}
		r, err := read(m)
		if err != nil {
			return err
		}
		if r.Error == nil && r.Cluster.Leader != "" {
			list = append(list, r)
		}
	}
}

// judge says whether those that answered as leaders are one that leads, and whether that is certain: another one may answer yet if not.
func judge(list []report) (certain bool, err error) {
	certain = true
	for i := range list {
		switch r := &list[i]; {
		case r.deaf():
			return false, errDeaf
		case r.Cluster.Leader != list[0].Cluster.Leader:
			return false, errTwins
		case r.doubts():
			certain = false
		}
	}
	return certain, nil
}

// pause waits for another answer.
func pause(ctx context.Context, answers *nats.Subscription) {
	ctx, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	for ctx.Err() == nil {
		if n, _, err := answers.Pending(); n > 0 || err != nil {
			return
		}
		<-time.After(grace / 20)
	}
}

// report is what a server says of a stream that it leads.
type report struct {
	Error   *jetstream.APIError `json:"error"`
	At      time.Time           `json:"ts"`
	Cluster struct {
		Leader   string    `json:"leader"`
		Since    time.Time `json:"leader_since"`
		Replicas []peer    `json:"replicas"`
	} `json:"cluster"`
}

// peer is a server with another copy of the stream.
type peer struct {
	// Active is how long ago the leader has heard of it, 0 if never.
	Active time.Duration `json:"active"`
}

func (p peer) heard() bool { return p.Active > 0 && p.Active < silence }

func read(m *nats.Msg) (r report, err error) {
	if len(m.Data) == 0 {
		return r, nats.ErrNoResponders
	}
	if err := json.Unmarshal(m.Data, &r); err != nil {
		return r, fmt.Errorf("natsstore: who leads the stream? %w", err)
	}
	return r, nil
}

// deaf says whether it has not heard of a majority.
func (r *report) deaf() bool {
	n := 1
	for _, p := range r.Cluster.Replicas {
		if p.heard() {
			n++
		}
	}
	return 2*n <= len(r.Cluster.Replicas)+1
}

// doubts says whether there is a server that may lead and not know that another one does.
func (r *report) doubts() bool {
	for _, p := range r.Cluster.Replicas {
		silent := p.Active
		if silent == 0 {
			silent = r.At.Sub(r.Cluster.Since)
		}
		if !p.heard() && silent < forgotten {
			return true
		}
	}
	return false
}
