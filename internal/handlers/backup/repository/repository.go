package repository

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed" // restore.sh
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"filippo.io/age"

	"github.com/cmsjobs/cmsjobs/internal/storage"
)

// Options say where a repository is and how it is used.
type Options struct {
	Store storage.Store
	// Recipients encrypt what is stored; none leave it readable.
	Recipients []age.Recipient
	// Identities open what is encrypted. Making backups, collecting garbage and
	// verifying bytes need none; restoring does.
	Identities []age.Identity
	// Cache is a local folder that keeps the last manifest, so that it need not be
	// read and decrypted again; it is made. "" keeps none.
	Cache string
	// Workers read files and objects at the same time; 0 means 3. Each needs
	// about 15 MB.
	Workers int
	// Lease is how long the lock of a process that died holds; 0 means 30 minutes. That
	// of a collection holds a fifth.
	Lease time.Duration
	// Grace is the age that garbage must have before it is deleted; 0 means a
	// day, a negative value none.
	Grace  time.Duration
	Now    func() time.Time
	Logger *slog.Logger
}

// Repository is an open repository. It is safe for concurrent use.
type Repository struct {
	store *counted
	o     Options
	id    string
}

// ErrNoRepository says that a place has none.
var ErrNoRepository = errors.New("there is no repository")

//go:embed restore.sh
var restoreScript []byte

// maxFormat bounds format.txt.
const maxFormat = 4 << 10

// version of the format, which its first line has.
const version = 1

// Open opens the repository at a place.
func Open(ctx context.Context, o Options) (*Repository, error) {
	if o.Store == nil || o.Now == nil || o.Logger == nil {
		return nil, errors.New("a repository needs a store, a clock and a logger")
	}
	if o.Workers <= 0 {
		o.Workers = 3
	}
	if o.Lease <= 0 {
		o.Lease = 30 * time.Minute
	}
	switch {
	case o.Grace == 0:
		o.Grace = 24 * time.Hour
	case o.Grace < 0:
		o.Grace = 0
	}
	r := &Repository{store: &counted{Store: o.Store}, o: o}
	text, err := readBounded(ctx, r.store, formatKey, maxFormat)
	if errors.Is(err, storage.ErrNotFound) {
		return nil, fmt.Errorf("%w in %s: %w", ErrNoRepository, r.Place(), err)
	}
	if err != nil {
		return nil, fmt.Errorf("opening the repository: %w", err)
	}
	f, err := parseFormat(text)
	if err != nil {
		return nil, fmt.Errorf("%s of the repository in %s: %w", formatKey, r.Place(), err)
	}
	r.id = f.id
	return r, nil
}

// Create opens the repository at a place, and makes it where there is none.
func Create(ctx context.Context, o Options) (*Repository, error) {
	r, err := Open(ctx, o)
	if !errors.Is(err, ErrNoRepository) {
		return r, err
	}
	for info, err := range o.Store.List(ctx, backupsFolder) {
		if err != nil {
			return nil, fmt.Errorf("looking for a repository: %w", err)
		}
		return nil, fmt.Errorf("%w: there are backups (%s) and no %s", ErrDamaged, info.Key, formatKey)
	}
	// Another process may do the same now: both read what the last one wrote.
	if err := o.Store.Put(ctx, restoreKey, bytes.NewReader(restoreScript), storage.PutOptions{}); err != nil {
		return nil, fmt.Errorf("making the repository: %w", err)
	}
	text := format{id: newRun(), restore: sha256.Sum256(restoreScript)}.text()
	if err := o.Store.Put(ctx, formatKey, strings.NewReader(text), storage.PutOptions{}); err != nil {
		return nil, fmt.Errorf("making the repository: %w", err)
	}
	return Open(ctx, o)
}

// ID is the repository's name, which each of its records has.
func (r *Repository) ID() string { return r.id }

// Place says where the repository is.
func (r *Repository) Place() string {
	if named, ok := r.o.Store.(fmt.Stringer); ok {
		return named.String()
	}
	return "the store"
}

// Operations says what was asked of the store since the repository was opened.
func (r *Repository) Operations() Operations { return r.store.operations() }

// format is what format.txt says.
type format struct {
	id      string
	restore Sum // of restore.sh
}

const formatTitle = "cmsjobs-repository"

// text ends with the SHA-256 of what is before, as the file's name has none.
func (f format) text() string {
	head := fmt.Sprintf("%s\t%d\nid\t%s\n%s\t%s\n", formatTitle, version, f.id, restoreKey, f.restore)
	sum := sha256.Sum256([]byte(head))
	return head + "sha256\t" + hex.EncodeToString(sum[:]) + "\n"
}

func parseFormat(text []byte) (format, error) {
	var f format
	lines := strings.Split(string(text), "\n")
	if len(lines) != 5 {
		return f, fmt.Errorf("%w: it is not as it was written", ErrDamaged)
	}
	if title, v, _ := strings.Cut(lines[0], "\t"); title == formatTitle && v != fmt.Sprint(version) {
		return f, fmt.Errorf("the format %.20q is not known to this program: use a newer one", v)
	}
	f.id = strings.TrimPrefix(lines[1], "id\t")
	s := scanner{fields: []string{strings.TrimPrefix(lines[2], restoreKey+"\t")}}
	f.restore = s.sum()
	if !isRun(f.id) || !s.done() || f.text() != string(text) {
		return f, fmt.Errorf("%w: it is not as it was written", ErrDamaged)
	}
	return f, nil
}

// hostName is for people who read a lock.
func hostName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "an unnamed host"
	}
	return fmt.Sprintf("%.150s (process %d)", host, os.Getpid())
}
