package gitpack

import (
	"bytes"
	"compress/zlib"
	"context"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/metrics"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/google/go-cmp/cmp"
)

// git runs a command in a folder and returns what it prints.
func git(tb testing.TB, dir string, in []byte, args ...string) []byte {
	tb.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Stdin = dir, bytes.NewReader(in)
	cmd.Env = append(cmd.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		tb.Fatalf("git %s: %v: %s", strings.Join(args, " "), err, complaint.String())
	}
	return out
}

// history makes a repository with commits of large and small files that change a
// little each time, so that its packs are full of deltas.
func history(tb testing.TB, commits int) (dir string) {
	tb.Helper()
	dir = tb.TempDir()
	git(tb, dir, nil, "init", "--quiet", "--bare", "--initial-branch", "main", ".")
	random := rand.New(rand.NewPCG(1, 2))
	large := make([]byte, 100_000)
	for i := range large {
		large[i] = byte(random.IntN(256))
	}
	var s bytes.Buffer
	for i := range commits {
		large[random.IntN(len(large))]++
		fmt.Fprintf(&s, "commit refs/heads/main\nmark :%d\ncommitter t <t@example.invalid> %d +0000\ndata 1\nx\n", i+1, 1_700_000_000+i)
		fmt.Fprintf(&s, "M 100644 inline large\ndata %d\n%s\n", len(large), large)
		fmt.Fprintf(&s, "M 100644 inline d/%d\ndata %d\n%d\n\n", i%7, len(fmt.Sprint(i)), i)
	}
	git(tb, dir, s.Bytes(), "fast-import", "--quiet")
	return dir
}

// receive is Receive into a new folder; what was left is listed.
func receive(tb testing.TB, from io.Reader) (folder string, left []string, err error) {
	tb.Helper()
	folder = tb.TempDir()
	_, err = Receive(tb.Context(), folder, from, func() {})
	return folder, names(tb, folder), err
}

func names(tb testing.TB, folder string) (names []string) {
	tb.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		tb.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// The index is the one that Git writes, byte for byte.
func TestIndexIsGits(t *testing.T) {
	dir := history(t, 60)
	for name, args := range map[string][]string{
		"deltas by place":  {"--delta-base-offset", "--depth=50", "--window=60"},
		"deltas by id":     {"--depth=50", "--window=60"},
		"no deltas":        {"--window=0"},
		"chains that long": {"--delta-base-offset", "--depth=4000", "--window=100"},
	} {
		t.Run(name, func(t *testing.T) {
			text := git(t, dir, []byte("main\n"), append([]string{"pack-objects", "--quiet", "--stdout", "--revs", "--no-reuse-delta"}, args...)...)
			p, err := scan(t.Context(), bytes.NewReader(text))
			if err != nil {
				t.Fatal(err)
			}
			deltas := 0
			for _, e := range p.entries {
				if e.kind.IsDelta() {
					deltas++
				}
			}
			if deltas > 50 != (name != "no deltas") || len(p.refs) > 50 != (name == "deltas by id") {
				t.Errorf("%d deltas, %d of them by id: they show nothing", deltas, len(p.refs))
			}
			ended := false
			folder := t.TempDir()
			got, err := Receive(t.Context(), folder, iotest{bytes.NewReader(text)}, func() { ended = true })
			if err != nil || !ended {
				t.Fatal(ended, err)
			}
			if want := []string{got + ".idx", got + ".pack"}; !slices.Equal(names(t, folder), want) {
				t.Errorf("there are %v, want %v", names(t, folder), want)
			}
			pack := filepath.Join(folder, got+".pack")
			if have, err := os.ReadFile(pack); err != nil || !bytes.Equal(have, text) {
				t.Errorf("the pack is another: %v", err)
			}
			theirs := filepath.Join(t.TempDir(), "theirs.idx")
			git(t, folder, nil, "index-pack", "-o", theirs, pack)
			mine, err := os.ReadFile(filepath.Join(folder, got+".idx"))
			if err != nil {
				t.Fatal(err)
			}
			if want, err := os.ReadFile(theirs); err != nil || !bytes.Equal(mine, want) {
				t.Errorf("the index is another: %v", err)
			}
		})
	}
}

// iotest gives a few bytes at a time, as a network does.
type iotest struct{ io.Reader }

func (r iotest) Read(b []byte) (int, error) { return r.Reader.Read(b[:min(len(b), 1000)]) }

// object is one of a pack that a test makes by hand.
type object struct {
	kind plumbing.ObjectType
	// says is the length that it claims; -1 is the true one.
	says int64
	// back is how far before it the object is that a delta changes.
	back int64
	base plumbing.Hash
	text io.Reader
	size int64
}

func blob(text string) object {
	return object{kind: plumbing.BlobObject, says: -1, text: strings.NewReader(text), size: int64(len(text))}
}

func delta(base string, text []byte) object {
	return object{kind: plumbing.REFDeltaObject, says: -1, base: plumbing.ComputeHash(plumbing.BlobObject, []byte(base)), text: bytes.NewReader(text), size: int64(len(text))}
}

// packOf writes a pack of objects; count is the number that it claims, -1 the
// true one.
func packOf(tb testing.TB, count int, objects ...object) []byte {
	tb.Helper()
	if count < 0 {
		count = len(objects)
	}
	var out bytes.Buffer
	out.WriteString("PACK\x00\x00\x00\x02")
	out.Write(binary.BigEndian.AppendUint32(nil, uint32(count)))
	for _, o := range objects {
		size := o.size
		if o.says >= 0 {
			size = o.says
		}
		first := byte(o.kind)<<4 | byte(size&15)
		for size >>= 4; size > 0; size >>= 7 {
			out.WriteByte(first | 0x80)
			first = byte(size & 127)
		}
		out.WriteByte(first)
		if o.kind == plumbing.OFSDeltaObject {
			out.WriteByte(byte(o.back))
		}
		if o.kind == plumbing.REFDeltaObject {
			out.Write(o.base[:])
		}
		z := zlib.NewWriter(&out)
		if _, err := io.Copy(z, o.text); err != nil {
			tb.Fatal(err)
		}
		if err := z.Close(); err != nil {
			tb.Fatal(err)
		}
	}
	return signed(out.Bytes())
}

// signed ends a pack with its sum.
func signed(text []byte) []byte {
	sum := sha1.Sum(text)
	return append(text, sum[:]...)
}

func TestBadPacks(t *testing.T) {
	good := packOf(t, -1, blob("hello"), delta("hello", []byte("\x05\x06\x90\x05\x01!")), delta("hello!", []byte("\x06\x02\x90\x02")))
	damaged := bytes.Clone(good)
	damaged[20] ^= 1
	cases := map[string]struct {
		reason string
		text   []byte
		want   error
	}{
		"good":                       {"so that the others mean something", good, nil},
		"nothing":                    {"a server that hangs up", nil, packfile.ErrEmptyPackfile},
		"no pack":                    {"a web page", []byte("<html>, which is long enough to be one"), packfile.ErrBadSignature},
		"cut off":                    {"a connection that broke", good[:len(good)-30], packfile.ErrMalformedPackFile},
		"without its sum":            {"the same, at the end", good[:len(good)-20], packfile.ErrMalformedPackFile},
		"damaged":                    {"a bit that fell over", damaged, errAny},
		"more than there is":         {"bytes behind the sum", append(bytes.Clone(good), "and more"...), packfile.ErrMalformedPackFile},
		"fewer than it says":         {"a number that is wrong", packOf(t, 2, blob("hello")), errAny},
		"more than it says":          {"the same", packOf(t, 1, blob("hello"), blob("you")), errAny},
		"too many":                   {"memory for each", packOf(t, mostObjects+1, blob("hello")), ErrTooLarge},
		"as many as can be":          {"a lie costs no memory", packOf(t, mostObjects, blob("hello")), errAny},
		"longer than it says":        {"an object's length", packOf(t, -1, object{kind: plumbing.BlobObject, says: 2, text: strings.NewReader("hello")}), errAny},
		"shorter than it says":       {"an object's length", packOf(t, -1, object{kind: plumbing.BlobObject, says: 9, text: strings.NewReader("hello")}), packfile.ErrMalformedPackFile},
		"shorter by far":             {"a length that no memory has", packOf(t, -1, object{kind: plumbing.BlobObject, says: 1 << 50, text: strings.NewReader("hello")}), packfile.ErrMalformedPackFile},
		"without its base":           {"a thin pack", packOf(t, -1, delta("hello", []byte("\x05\x05\x90\x05"))), packfile.ErrMalformedPackFile},
		"its own base":               {"a circle", packOf(t, -1, blob("you"), delta("hello", []byte("\x05\x05\x90\x05"))), packfile.ErrMalformedPackFile},
		"a base that is none":        {"a place between two objects", packOf(t, -1, blob("hello"), object{kind: plumbing.OFSDeltaObject, says: -1, back: 3, text: strings.NewReader("\x05\x05\x90\x05"), size: 4}), packfile.ErrMalformedPackFile},
		"a base before all":          {"a place before the pack", packOf(t, -1, object{kind: plumbing.OFSDeltaObject, says: -1, back: 100, text: strings.NewReader("\x05\x05\x90\x05"), size: 4}), packfile.ErrMalformedPackFile},
		"another base":               {"the size of what is changed", packOf(t, -1, blob("hello"), delta("hello", []byte("\x04\x04\x90\x04"))), packfile.ErrMalformedPackFile},
		"beyond the base":            {"a piece that is not there", packOf(t, -1, blob("hello"), delta("hello", []byte("\x05\x05\x91\x01\x05"))), packfile.ErrMalformedPackFile},
		"more than the delta makes":  {"its size", packOf(t, -1, blob("hello"), delta("hello", []byte("\x05\x02\x90\x05"))), packfile.ErrMalformedPackFile},
		"less than the delta makes":  {"its size", packOf(t, -1, blob("hello"), delta("hello", []byte("\x05\x09\x90\x05"))), packfile.ErrMalformedPackFile},
		"a command that is none":     {"the one that Git keeps for later", packOf(t, -1, blob("hello"), delta("hello", []byte("\x05\x05\x00"))), packfile.ErrMalformedPackFile},
		"a delta that breaks off":    {"amid a command", packOf(t, -1, blob("hello"), delta("hello", []byte("\x05\x05\x05he"))), packfile.ErrMalformedPackFile},
		"a delta of immense size":    {"who reads it would hold it", packOf(t, -1, blob("hello"), object{kind: plumbing.REFDeltaObject, says: mostDelta + 1, text: strings.NewReader("x")}), ErrTooLarge},
		"a kind that nobody knows":   {"five", packOf(t, -1, object{kind: 5, says: -1, text: strings.NewReader("x"), size: 1}), packfile.ErrMalformedPackFile},
		"another version of a pack":  {"three", signed([]byte("PACK\x00\x00\x00\x03\x00\x00\x00\x00")), errAny},
		"a sum that is another's":    {"a lie", append(good[:len(good)-20:len(good)-20], make([]byte, 20)...), packfile.ErrMalformedPackFile},
		"an object without its data": {"the end comes at once", signed([]byte("PACK\x00\x00\x00\x02\x00\x00\x00\x01\x35")), errAny},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, left, err := receive(t, bytes.NewReader(c.text))
			if errors.Is(c.want, errAny) && err == nil || c.want != nil && !errors.Is(c.want, errAny) && !errors.Is(err, c.want) || c.want == nil && err != nil {
				t.Errorf("%s: got %v, want %v", c.reason, err, c.want)
			}
			if want := 0; c.want != nil && len(left) != want {
				t.Errorf("%v is left", left)
			}
		})
	}
}

var errAny = errors.New("some error")

// Whatever comes, it is refused or it is what Git takes too.
func FuzzReceive(f *testing.F) {
	f.Add(packOf(f, -1, blob("hello"), delta("hello", []byte("\x05\x06\x90\x05\x01!")), delta("hello!", []byte("\x06\x02\x90\x02"))))
	f.Add(packOf(f, -1, blob("hello"), object{kind: plumbing.OFSDeltaObject, says: -1, back: 14, text: strings.NewReader("\x05\x05\x90\x05"), size: 4}))
	f.Fuzz(func(t *testing.T, text []byte) {
		// With a right sum more of it is looked at.
		for _, text := range [][]byte{text, signed(bytes.Clone(text[:max(len(text)-20, 0)]))} {
			folder, left, err := receive(t, bytes.NewReader(text))
			if err != nil {
				if len(left) > 0 {
					t.Errorf("%v is left after %v", left, err)
				}
				continue
			}
			cmd := exec.Command("git", "index-pack", "-o", filepath.Join(t.TempDir(), "theirs.idx"), filepath.Join(folder, left[1]))
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("git does not take what was taken: %v, %s", err, out)
			}
		}
	})
}

// A pack that is given up leaves nothing.
func TestReceiveEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	text := packOf(t, -1, blob("hello"), blob("you"))
	folder := t.TempDir()
	from := io.MultiReader(bytes.NewReader(text[:20]), readerFunc(func([]byte) (int, error) {
		cancel()
		return 0, errors.New("it stopped")
	}))
	if _, err := Receive(ctx, folder, from, func() {}); err == nil || len(names(t, folder)) > 0 {
		t.Errorf("%v is left, %v", names(t, folder), err)
	}
	if _, err := Receive(ctx, folder, bytes.NewReader(text), func() {}); !errors.Is(err, context.Canceled) || len(names(t, folder)) > 0 {
		t.Errorf("%v is left, %v", names(t, folder), err)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

// zeros are as many bytes of nothing: they cost next to nothing to send.
func zeros(n int64) io.Reader {
	return io.LimitReader(readerFunc(func(b []byte) (int, error) { clear(b); return len(b), nil }), n)
}

// peak runs something and returns by how much the heap grew meanwhile at most,
// in bytes, garbage included.
func peak(run func()) uint64 {
	sample := func() uint64 {
		s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		metrics.Read(s)
		return s[0].Value.Uint64()
	}
	runtime.GC()
	before, most := sample(), uint64(0)
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for {
			most = max(most, sample())
			select {
			case <-over:
				return
			case <-tick.C:
			}
		}
	}()
	run()
	close(over)
	<-ended
	return most - min(most, before)
}

// A bomb, whole or told by a delta of a delta, passes through: 40 kB that are
// 40 MB when they are unpacked.
func TestBombs(t *testing.T) {
	const size = 40 << 20
	whole := packOf(t, -1, object{kind: plumbing.BlobObject, says: -1, text: zeros(size), size: size})
	// Each of the three is as large as the first one.
	copyAll := binary.AppendUvarint(binary.AppendUvarint(nil, size), size)
	for range size / 0xffffff {
		copyAll = append(copyAll, 0xf0, 0xff, 0xff, 0xff)
	}
	rest := binary.LittleEndian.AppendUint32(nil, size%0xffffff)
	copyAll = append(append(copyAll, 0xf0), rest[:3]...)
	id := plumbing.NewHasher(plumbing.BlobObject, size)
	if _, err := io.Copy(id, zeros(size)); err != nil {
		t.Fatal(err)
	}
	chain := packOf(t, -1, object{kind: plumbing.BlobObject, says: -1, text: zeros(size), size: size},
		object{kind: plumbing.REFDeltaObject, says: -1, base: id.Sum(), text: bytes.NewReader(copyAll), size: int64(len(copyAll))})
	for name, text := range map[string][]byte{"whole": whole, "by a delta": chain} {
		var err error
		var left []string
		grew := peak(func() { _, left, err = receive(t, bytes.NewReader(text)) })
		if err != nil || len(left) != 2 {
			t.Errorf("%s: %v, %v", name, left, err)
		}
		t.Logf("%s: %d bytes come, the heap grows by %.1f MiB", name, len(text), float64(grew)/(1<<20))
		if grew > 16<<20 {
			t.Errorf("%s: the heap grew by %d MiB", name, grew>>20)
		}
	}
}

// objectsOf lists all objects of a repository with their kinds and sizes.
func objectsOf(tb testing.TB, dir string) string {
	tb.Helper()
	lines := strings.Split(string(git(tb, dir, nil, "cat-file", "--batch-check", "--batch-all-objects")), "\n")
	slices.Sort(lines)
	return strings.Join(slices.Compact(lines), "\n")
}

// many makes a repository that has its history in as many packs, as one that was
// fetched commit by commit.
func many(tb testing.TB, commits int) (dir, folder string) {
	tb.Helper()
	from := history(tb, commits)
	dir = tb.TempDir()
	git(tb, dir, nil, "init", "--quiet", "--bare", "--initial-branch", "main", ".")
	folder = filepath.Join(dir, "objects", "pack")
	ids := strings.Fields(string(git(tb, from, nil, "rev-list", "--reverse", "main")))
	for i, id := range ids {
		want := id + "\n"
		if i > 0 {
			want += "^" + ids[i-1] + "\n"
		}
		text := git(tb, from, []byte(want), "pack-objects", "--quiet", "--stdout", "--revs", "--delta-base-offset")
		if _, err := Receive(tb.Context(), folder, bytes.NewReader(text), func() {}); err != nil {
			tb.Fatal(err)
		}
	}
	git(tb, dir, nil, "update-ref", "refs/heads/main", ids[len(ids)-1])
	return dir, folder
}

// freely drops at once: nobody reads.
func freely(work func() error) error { return work() }

func TestJoin(t *testing.T) {
	dir, folder := many(t, 40)
	before := objectsOf(t, dir)
	if joined, err := Join(t.Context(), folder, 40, freely); joined || err != nil {
		t.Errorf("there are no more than 40: %t, %v", joined, err)
	}
	held := false
	joined, err := Join(t.Context(), folder, 39, func(work func() error) error {
		// The new one is there, and so are the old ones: a crash here loses nothing.
		if n := len(names(t, folder)); n != 82 {
			t.Errorf("there are %d files before some go, want 82", n)
		}
		held = true
		return work()
	})
	if !joined || err != nil || !held {
		t.Fatal(joined, held, err)
	}
	if n := len(names(t, folder)); n != 2 {
		t.Errorf("there are %d files, want a pack and its index", n)
	}
	if diff := cmp.Diff(before, objectsOf(t, dir)); diff != "" {
		t.Errorf("the objects are others (-before +after):\n%s", diff)
	}
	git(t, dir, nil, "fsck", "--full", "--strict")
	for _, name := range names(t, folder) {
		if base, ok := strings.CutSuffix(name, ".pack"); ok {
			git(t, folder, nil, "verify-pack", base)
		}
	}
}

// A crash at any point leaves what can be read, and the next join puts it right.
func TestJoinAfterCrash(t *testing.T) {
	dir, folder := many(t, 12)
	before := objectsOf(t, dir)
	crash := errors.New("it crashed")
	if _, err := Join(t.Context(), folder, 5, func(func() error) error { return crash }); !errors.Is(err, crash) {
		t.Fatal(err)
	}
	size, packs, err := Size(folder)
	if err != nil || packs != 13 {
		t.Fatal(packs, err)
	}
	// Later, amid removing: an index is left.
	all, err := list(folder)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(folder, all[len(all)-1].name+".pack")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, prefix+"1"), []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Sweep(folder); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, objectsOf(t, dir)); diff != "" {
		t.Errorf("after the crash (-before +after):\n%s", diff)
	}
	if joined, err := Join(t.Context(), folder, 5, freely); !joined || err != nil {
		t.Fatal(joined, err)
	}
	again, packs, err := Size(folder)
	if err != nil || packs != 1 || again > size/2+1000 {
		t.Errorf("%d packs with %d bytes, were %d: what is there twice is kept twice, %v", packs, again, size, err)
	}
	if diff := cmp.Diff(before, objectsOf(t, dir)); diff != "" {
		t.Errorf("joined at last (-before +after):\n%s", diff)
	}
	git(t, dir, nil, "fsck", "--full", "--strict")
}

// What is damaged is not joined, and nothing goes.
func TestJoinDamaged(t *testing.T) {
	_, folder := many(t, 6)
	all, err := list(folder)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(folder, all[2].name+".pack")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func([]byte) []byte{
		"a bit":   func(b []byte) []byte { b[len(b)/2] ^= 1; return b },
		"cut off": func(b []byte) []byte { return b[:len(b)-1] },
		"empty":   func([]byte) []byte { return nil },
	} {
		if err := os.WriteFile(file, change(bytes.Clone(text)), 0o600); err != nil {
			t.Fatal(err)
		}
		before := names(t, folder)
		joined, err := Join(t.Context(), folder, 2, freely)
		if joined || !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), all[2].name) {
			t.Errorf("%s: %t, %v", name, joined, err)
		}
		if diff := cmp.Diff(before, names(t, folder)); diff != "" {
			t.Errorf("%s (-before +after):\n%s", name, diff)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if joined, err := Join(ctx, folder, 2, freely); joined || !errors.Is(err, context.Canceled) || len(names(t, folder)) != 12 {
		t.Errorf("given up: %t, %v, %v", joined, err, names(t, folder))
	}
}

// The large ones stay as they are, and few are left in any case.
func TestTail(t *testing.T) {
	cases := map[string]struct {
		reason string
		sizes  []int64
		want   int
	}{
		"all alike":        {"nobody is large", []int64{5, 5, 5, 5}, 4},
		"one large":        {"the first download", []int64{1000, 5, 5, 5}, 3},
		"a large pair":     {"each has twice what follows", []int64{1000, 100, 5, 5, 5}, 3},
		"not large enough": {"written again, but seldom", []int64{1000, 600, 5, 5}, 4},
		"steps":            {"nothing to join", []int64{1000, 100, 10, 1}, 0},
	}
	for name, c := range cases {
		all := make([]stored, len(c.sizes))
		for i := range all {
			all[i] = stored{fmt.Sprint(i), c.sizes[i]}
		}
		if got := tail(all); len(got) != c.want {
			t.Errorf("%s, %s: %d are joined, want %d", name, c.reason, len(got), c.want)
		}
	}
	// However packs come, writing them again costs little.
	random := rand.New(rand.NewPCG(3, 4))
	var all []stored
	came, written, most := int64(0), int64(0), 0
	for range 10_000 {
		p := stored{size: 1 + random.Int64N(1000)}
		came += p.size
		all = append(all, p)
		slices.SortFunc(all, func(a, b stored) int { return int(b.size - a.size) })
		most = max(most, len(all))
		if len(all) <= 64 {
			continue
		}
		small := tail(all)
		sum := int64(0)
		for _, p := range small {
			sum += p.size
		}
		written += sum
		all = append(all[:len(all)-len(small)], stored{size: sum})
		slices.SortFunc(all, func(a, b stored) int { return int(b.size - a.size) })
	}
	t.Logf("10,000 downloads: each byte is written again %.1f times, and there are %d packs at most", float64(written)/float64(came), most)
	if most > 65 || written > 20*came {
		t.Errorf("%d packs, %d bytes written for %d", most, written, came)
	}
}

func TestSweep(t *testing.T) {
	folder := t.TempDir()
	for _, name := range []string{"pack-1.pack", "pack-1.idx", "pack-2.idx", prefix + "3", "other"} {
		if err := os.WriteFile(filepath.Join(folder, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := Sweep(folder); err != nil {
		t.Fatal(err)
	}
	if want := []string{"other", "pack-1.idx", "pack-1.pack"}; !slices.Equal(names(t, folder), want) {
		t.Errorf("there are %v, want %v", names(t, folder), want)
	}
	if err := Keep(folder, "pack-2"); err != nil || !slices.Equal(names(t, folder), []string{"other"}) {
		t.Errorf("there are %v, %v", names(t, folder), err)
	}
	if err := Sweep(filepath.Join(folder, "none")); err != nil {
		t.Error(err)
	}
	if size, packs, err := Size(filepath.Join(folder, "none")); size != 0 || packs != 0 || err != nil {
		t.Error(size, packs, err)
	}
}

// BenchmarkReceive takes a pack of 2,000 commits.
func BenchmarkReceive(b *testing.B) {
	dir := history(b, 2000)
	text := git(b, dir, []byte("main\n"), "pack-objects", "--quiet", "--stdout", "--revs", "--delta-base-offset", "--no-reuse-delta")
	b.Run("landfall", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := Receive(b.Context(), b.TempDir(), bytes.NewReader(text), func() {}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("git", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			git(b, dir, text, "index-pack", "--threads=1", "--stdin", filepath.Join(b.TempDir(), "x.pack"))
		}
	})
}
