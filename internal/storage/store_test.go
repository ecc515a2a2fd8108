package storage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// stores are all implementations; each test of this file runs on each.
func stores(t *testing.T, run func(t *testing.T, s Store)) {
	t.Run("local", func(t *testing.T) { run(t, newLocal(t)) })
	t.Run("proxy", func(t *testing.T) { run(t, newFaultyS3(t).store(t, nil)) })
	t.Run("sftp", func(t *testing.T) { run(t, newSFTP(t)) })
	t.Run("rclone", func(t *testing.T) { run(t, newRclone(t)) })
	t.Run("versitygw", func(t *testing.T) { run(t, newVersity(t)) })
}

func newLocal(t *testing.T) *Local {
	t.Helper()
	l, err := NewLocal(t.TempDir()+"/new", LocalOptions{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func put(t *testing.T, s Store, key, content string) {
	t.Helper()
	if err := s.Put(t.Context(), key, strings.NewReader(content), PutOptions{}); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, s Store, key string) string {
	t.Helper()
	r, info, err := s.Open(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	if info.Size != int64(len(b)) || info.Key != key || info.Modified.IsZero() {
		t.Errorf("Open(%s) says %+v of %d bytes", key, info, len(b))
	}
	return string(b)
}

func keys(t *testing.T, s Store, prefix string) []string {
	t.Helper()
	found := []string{}
	for info, err := range s.List(t.Context(), prefix) {
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, info.Key)
	}
	return found
}

func TestWhatIsPutIsRead(t *testing.T) {
	stores(t, func(t *testing.T, s Store) {
		for _, key := range []string{"a.txt", "deep/er/b.txt", "emoji 😀/ü+&=%20.txt"} {
			for _, content := range []string{"first", "", "second, longer"} {
				put(t, s, key, content)
				if got := read(t, s, key); got != content {
					t.Errorf("%s holds %q, want %q", key, got, content)
				}
				info, err := s.Stat(t.Context(), key)
				if err != nil || info.Size != int64(len(content)) || info.Key != key {
					t.Errorf("Stat(%s) = %+v, %v", key, info, err)
				}
			}
		}
	})
}

func TestWhatIsNotThereIsNotFound(t *testing.T) {
	stores(t, func(t *testing.T, s Store) {
		put(t, s, "folder/file", "x")
		for _, key := range []string{"none", "folder", "folder/none", "none/none"} {
			if _, _, err := s.Open(t.Context(), key); !errors.Is(err, ErrNotFound) {
				t.Errorf("Open(%s): %v", key, err)
			}
			if _, err := s.Stat(t.Context(), key); !errors.Is(err, ErrNotFound) {
				t.Errorf("Stat(%s): %v", key, err)
			}
			if err := s.Delete(t.Context(), key); err != nil {
				t.Errorf("Delete(%s): %v", key, err)
			}
		}
		if got := keys(t, s, "none"); len(got) != 0 {
			t.Errorf("nothing is listed as %v", got)
		}
		if got := read(t, s, "folder/file"); got != "x" {
			t.Errorf("folder/file holds %q", got)
		}
	})
}

func TestDeleted(t *testing.T) {
	stores(t, func(t *testing.T, s Store) {
		put(t, s, "a/b", "x")
		put(t, s, "a/c", "x")
		if err := s.Delete(t.Context(), "a/b"); err != nil {
			t.Fatal(err)
		}
		if got := keys(t, s, ""); !slices.Equal(got, []string{"a/c"}) {
			t.Errorf("left are %v", got)
		}
	})
}

func TestManyAreDeleted(t *testing.T) {
	stores(t, func(t *testing.T, s Store) {
		var gone []string
		for i := range 12 {
			key := fmt.Sprintf("%d/%d", i%3, i)
			put(t, s, key, "x")
			gone = append(gone, key)
		}
		put(t, s, "1/stays", "x")
		many := s.(interface {
			DeleteAll(ctx context.Context, keys []string) error
		})
		if err := many.DeleteAll(t.Context(), append(gone, "1/not-there", "nowhere/x")); err != nil {
			t.Fatal(err)
		}
		if got := keys(t, s, ""); !slices.Equal(got, []string{"1/stays"}) {
			t.Errorf("left are %v", got)
		}
		if err := many.DeleteAll(t.Context(), []string{"../x"}); !errors.Is(err, ErrKey) {
			t.Errorf("a name that is no key: %v", err)
		}
	})
}

func TestListIsInKeyOrder(t *testing.T) {
	stores(t, func(t *testing.T, s Store) {
		all := []string{"a-b", "a/b/c", "a/b0", "a0", "b/x", "ba"}
		for _, key := range slices.Backward(all) {
			put(t, s, key, key)
		}
		for prefix, want := range map[string][]string{
			"": all, "a": all[:4], "a/": all[1:3], "a/b": all[1:3], "a/b/": all[1:2], "b": all[4:], "x": {},
		} {
			if got := keys(t, s, prefix); !slices.Equal(got, want) {
				t.Errorf("List(%q) = %v, want %v", prefix, got, want)
			}
		}
		for range s.List(t.Context(), "") {
			break // stopping early is allowed
		}
	})
}

func TestKeysStayUnderTheRoot(t *testing.T) {
	stores(t, func(t *testing.T, s Store) {
		for _, key := range []string{"", ".", "..", "../x", "a/../../x", "/etc/passwd", "a//b", "a/", "./a", "a\\b",
			"a\x00b", "a/" + tempPrefix + "x", strings.Repeat("a", 1025), "\xff"} {
			if err := s.Put(t.Context(), key, strings.NewReader("x"), PutOptions{}); err == nil {
				t.Errorf("Put(%q) is allowed", key)
			}
			if _, _, err := s.Open(t.Context(), key); err == nil || errors.Is(err, ErrNotFound) {
				t.Errorf("Open(%q): %v", key, err)
			}
			if _, err := s.Stat(t.Context(), key); err == nil || errors.Is(err, ErrNotFound) {
				t.Errorf("Stat(%q): %v", key, err)
			}
			if err := s.Delete(t.Context(), key); err == nil {
				t.Errorf("Delete(%q) is allowed", key)
			}
		}
	})
}

func TestAFailedPutLeavesTheFormerObject(t *testing.T) {
	broken := errors.New("the source broke")
	stores(t, func(t *testing.T, s Store) {
		put(t, s, "a/kept", "former")
		for _, size := range []int{0, 10, 20 << 20} { // 20 MiB are in several parts
			for _, key := range []string{"a/kept", "b/new"} {
				r := io.MultiReader(bytes.NewReader(make([]byte, size)), iotest.ErrReader(broken))
				if err := s.Put(t.Context(), key, r, PutOptions{}); !errors.Is(err, broken) {
					t.Fatalf("Put of %d bytes and a fault: %v", size, err)
				}
			}
		}
		if got := read(t, s, "a/kept"); got != "former" {
			t.Errorf("the former object holds %.20q", got)
		}
		if got := keys(t, s, ""); !slices.Equal(got, []string{"a/kept"}) {
			t.Errorf("listed are %v", got)
		}
		noLeftovers(t, s)
	})
}

func TestACancelledPutEnds(t *testing.T) {
	stores(t, func(t *testing.T, s Store) {
		ctx, cancel := context.WithCancelCause(t.Context())
		stop := errors.New("stop")
		endless := readerFunc(func(p []byte) (int, error) { cancel(stop); return len(p), nil })
		if err := s.Put(ctx, "x", endless, PutOptions{}); err == nil {
			t.Error("a cancelled Put succeeded")
		}
		if got := keys(t, s, ""); len(got) != 0 {
			t.Errorf("listed are %v", got)
		}
		noLeftovers(t, s)
	})
}

func TestManyParts(t *testing.T) {
	stores(t, func(t *testing.T, s Store) {
		want := make([]byte, 3*minPart+12345)
		for i := range want {
			want[i] = byte(i * i >> 7)
		}
		for _, size := range []int{minPart - 1, minPart, minPart + 1, 2 * minPart, len(want)} {
			if err := s.Put(t.Context(), "big", bytes.NewReader(want[:size]),
				PutOptions{ExpectedSize: int64(size), ContentType: "application/zstd"}); err != nil {
				t.Fatal(err)
			}
			if got := read(t, s, "big"); got != string(want[:size]) {
				t.Errorf("%d bytes came back as others", size)
			}
		}
	})
}

// noLeftovers fails when a store holds more than its objects.
func noLeftovers(t *testing.T, s Store) {
	t.Helper()
	sweeper := s.(interface {
		unfinished(context.Context) ([]string, error)
	})
	if left, err := sweeper.unfinished(context.Background()); err != nil || len(left) > 0 {
		t.Errorf("left over: %v, %v", left, err)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func ExampleStore() {
	dir, err := os.MkdirTemp("", "store-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	store, err := NewLocal(dir, LocalOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()
	ctx := context.Background()
	if err := store.Put(ctx, "greetings/hello.txt", strings.NewReader("hello"), PutOptions{}); err != nil {
		fmt.Println(err)
		return
	}
	for info, err := range store.List(ctx, "greetings/") {
		fmt.Println(info.Key, info.Size, err)
	}
	// Output: greetings/hello.txt 5 <nil>
}
