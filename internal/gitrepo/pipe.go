package gitrepo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/transport"
)

// service is a program of Git's at the other end.
type service string

const (
	uploadPack  service = "upload-pack"
	receivePack service = "receive-pack"
)

// pipe is a conversation with a service at the other end of two streams.
// go-git's own is not used: its SSH client cannot be interrupted during the
// handshake.
type pipe struct {
	in     io.WriteCloser
	out    io.Reader
	stderr *tail
	// wait waits for the other end; what it wrote to stderr is complete then.
	wait func() error
	// hangUp ends the conversation, whatever state it is in.
	hangUp func()
	// linger waits for the last words of an end that has hung up.
	linger func()

	asked bool
	once  sync.Once
	ended error
}

// AdvertisedReferencesContext returns the server's refs. The context is the one
// that the conversation began with.
func (p *pipe) AdvertisedReferencesContext(context.Context) (*packp.AdvRefs, error) {
	refs := packp.NewAdvRefs()
	err := refs.Decode(p.out)
	switch {
	case errors.Is(err, packp.ErrEmptyAdvRefs), err == nil && refs.IsEmpty():
		return nil, transport.ErrEmptyRemoteRepository
	case err != nil:
		return nil, p.complaint(err)
	}
	transport.FilterUnsupportedCapabilities(refs.Capabilities)
	return refs, nil
}

// UploadPack asks for a pack.
func (p *pipe) UploadPack(_ context.Context, req *packp.UploadPackRequest) (*packp.UploadPackResponse, error) {
	p.asked = true
	if err := errors.Join(req.UploadRequest.Encode(p.in), req.UploadHaves.Encode(p.in, true), pktline.NewEncoder(p.in).EncodeString("done\n"), p.in.Close()); err != nil {
		return nil, p.complaint(fmt.Errorf("asking for a pack: %w", err))
	}
	resp := packp.NewUploadPackResponse(req)
	if err := resp.Decode(io.NopCloser(p.out)); err != nil {
		return nil, p.complaint(fmt.Errorf("reading the answer: %w", err))
	}
	return resp, nil
}

// complaint prefers what the other end said to what became of it here.
func (p *pipe) complaint(err error) error {
	if errors.Is(err, ErrTooLarge) {
		return err
	}
	p.asked = true // nothing more to say
	if errors.Is(err, packp.ErrEmptyInput) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		p.linger()
	}
	_ = p.Close()
	said := p.stderr.String()
	if strings.Contains(said, "does not appear to be a git repository") || strings.Contains(said, "ository not found") || strings.Contains(said, "does not exist") {
		return ErrNotFound
	}
	if said != "" {
		return errors.New(said)
	}
	return err
}

// Close says goodbye and waits for the other end.
func (p *pipe) Close() error {
	p.once.Do(func() {
		if !p.asked {
			_, _ = p.in.Write(pktline.FlushPkt)
		}
		_ = p.in.Close()
		p.hangUp()
		p.ended = p.wait()
	})
	return p.ended
}

// tail keeps the end of what is written to it.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, b...)
	if over := len(t.buf) - mostText; over > 0 {
		t.buf = append(t.buf[:0], t.buf[over:]...)
	}
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.TrimSpace(t.buf))
}

// goodbye is how long a program may take to end when its streams have.
const goodbye = 5 * time.Second

// callProgram runs git on this machine.
func callProgram(ctx context.Context, p *patience, s service, folder string) (*pipe, error) {
	ctx, cancel := context.WithCancel(ctx)
	cmd := exec.CommandContext(ctx, "git", string(s), folder)
	cmd.Env = append(cmd.Environ(), "GIT_PROTOCOL=", "LC_ALL=C")
	cmd.WaitDelay = goodbye
	stderr := &tail{}
	cmd.Stderr = stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		cancel()
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		cancel()
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		cancel()
		return nil, fmt.Errorf("running git, which a folder or file:// needs: %w", err)
	}
	return &pipe{in: in, out: p.reader(out), stderr: stderr, hangUp: func() {}, linger: func() {}, wait: func() error {
		// It ends by itself when its streams end; after that it is made to.
		timer := time.AfterFunc(goodbye, cancel)
		defer timer.Stop()
		defer cancel()
		_, _ = io.Copy(io.Discard, out)
		return cmd.Wait()
	}}, nil
}
