package frame

import (
	"encoding/binary"
	"errors"
	"io"
	"strconv"
	"strings"
)

// Proto is the version of the protocol.
const Proto = 1

// Sizes of frames in bytes.
const (
	MaxInput  = 32 << 20
	MaxOutput = 1 << 20
	maxHello  = 64 << 10
)

// ErrTooLarge is a frame that is larger than its limit.
var ErrTooLarge = errors.New("frame: too large")

// Write writes a frame.
func Write(w io.Writer, data []byte) error {
	head := binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(data)), uint32(len(data))) //nolint:gosec // bounded by its writers
	_, err := w.Write(append(head, data...))
	return err
}

// Read reads a frame of at most limit bytes.
func Read(r io.Reader, limit int) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := int64(binary.BigEndian.Uint32(head[:]))
	if n > int64(limit) {
		return nil, ErrTooLarge
	}
	// What comes is read, not what was announced.
	out, err := io.ReadAll(io.LimitReader(r, n))
	if err == nil && int64(len(out)) < n {
		err = io.ErrUnexpectedEOF
	}
	return out, err
}

// Hello begins a conversation; the event follows as it came to the client.
type Hello struct {
	Proto          int
	Client         string
	Dialect, Event string
	Cwd            string
	// DeadlineMS is how long the client waits, in milliseconds.
	DeadlineMS int
	// Headless means that no person is in front of the agent.
	Headless bool
}

// Marshal encodes a hello: strings that end in a zero byte.
func (h *Hello) Marshal() []byte {
	headless := "0"
	if h.Headless {
		headless = "1"
	}
	fields := []string{strconv.Itoa(h.Proto), h.Client, h.Dialect, h.Event, h.Cwd, strconv.Itoa(h.DeadlineMS), headless}
	var out []byte
	for _, f := range fields {
		out = append(append(out, strings.ReplaceAll(f, "\x00", "")...), 0)
	}
	return out
}

// ReadHello reads and decodes a hello. Fields that are added later are ignored.
func ReadHello(r io.Reader) (*Hello, error) {
	data, err := Read(r, maxHello)
	if err != nil {
		return nil, err
	}
	f := strings.Split(string(data), "\x00")
	if len(f) < 7 {
		return nil, errors.New("frame: the hello is incomplete")
	}
	proto, err := strconv.Atoi(f[0])
	if err != nil {
		return nil, errors.New("frame: the hello has no version")
	}
	deadline, err := strconv.Atoi(f[5])
	if err != nil || deadline < 0 {
		return nil, errors.New("frame: the hello has no deadline")
	}
	return &Hello{Proto: proto, Client: f[1], Dialect: f[2], Event: f[3], Cwd: f[4], DeadlineMS: deadline, Headless: f[6] == "1"}, nil
}

// Status begins a reply.
type Status byte

// Statuses of a reply.
const (
	// StatusOK is an answer.
	StatusOK Status = 'A'
	// StatusRestart means that the daemon makes room for a newer one, to be asked instead.
	StatusRestart Status = 'R'
)

// Reply is what the client prints, and its exit code.
type Reply struct {
	Status Status
	Exit   byte
	Stdout []byte
}

// Write writes the reply.
func (r *Reply) Write(w io.Writer) error {
	return Write(w, append([]byte{byte(r.Status), r.Exit}, r.Stdout...))
}

// ReadReply reads a reply.
func ReadReply(r io.Reader) (*Reply, error) {
	data, err := Read(r, MaxOutput+2)
	if err != nil {
		return nil, err
	}
	if len(data) < 2 || data[0] != byte(StatusOK) && data[0] != byte(StatusRestart) {
		return nil, errors.New("frame: the reply is incomplete")
	}
	return &Reply{Status: Status(data[0]), Exit: data[1], Stdout: data[2:]}, nil
}
