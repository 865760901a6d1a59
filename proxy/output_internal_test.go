package proxy

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-dev/mortise/proxy/wire"
)

// While bytes are held there is a sign of life every ten seconds, and none before the upstream's first event
// (acceptance 49).
func TestKeepAlive(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, p := range []wire.Protocol{wire.Messages, wire.Chat} {
			w := httptest.NewRecorder()
			o := newOutput(w, p)
			stop := o.keepAlive(context.Background())
			time.Sleep(time.Minute)
			synctest.Wait()
			if w.Body.Len() > 0 {
				t.Errorf("before the first event: %s", w.Body)
			}
			_ = o.events(wire.NewEvent("message_start", []byte("{}")))
			time.Sleep(200 * time.Second)
			synctest.Wait()
			stop()
			n := strings.Count(w.Body.String(), "ping\"}") + strings.Count(w.Body.String(), ": mortise")
			if n < 15 || n > 21 {
				t.Errorf("%s: %d signs of life in 200 s", p, n)
			}
		}
	})
}
