package backup

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/archive"
	"github.com/cmsjobs/cmsjobs/internal/storage"
)

// Botble is a destination that keeps backups as the CMS's own backup plugin
// does (folder storage/app/backup), so that its admin lists and restores them:
//
//	KEY/database-KEY.zip   holds database-KEY.sql
//	KEY/storage-KEY.zip    holds the upload root's files
//	backup.json            names every KEY
//
// KEY is YYYY-MM-DD-HH-MM-SS in the CMS's zone. Beside them lie
// KEY/routines-KEY.zip, which the CMS cannot restore, and KEY/cmsjobs.json,
// our sidecar, by which we know our own. It cannot give an archive back: prove
// and restore from another destination.
type Botble struct {
	store storage.Store
	// Zone is the CMS's.
	zone func(context.Context) (*time.Location, error)
	// uploads is the label of the FileSet that is the CMS's upload root.
	uploads string
	public  bool

	mu sync.Mutex // one writer of backup.json
}

// NewBotble keeps backups in a store whose root is storage/app/backup.
// uploads is the label of the FileSet that is the upload root. public makes
// files readable by everybody on the machine, which is needed where the web
// server is another user.
func NewBotble(store storage.Store, uploads string, zone func(context.Context) (*time.Location, error), public bool) *Botble {
	return &Botble{store: store, zone: zone, uploads: uploads, public: public}
}

// String is the place, for messages.
func (b *Botble) String() string { return place(b.store) }

// Free is the room on a local disk.
func (b *Botble) Free() (int64, error) {
	if s, ok := b.store.(freeSpace); ok {
		return s.Free()
	}
	return 1 << 62, nil
}

const (
	botbleIndex = "backup.json"
	botbleMark  = "cmsjobs.json"
	botbleKey   = "2006-01-02-15-04-05"
)

var botbleFolder = regexp.MustCompile(`^\d{4}-\d\d-\d\d-\d\d-\d\d-\d\d$`)

// Put takes an archive apart into the CMS's files, or a sidecar as the mark
// that makes them count.
func (b *Botble) Put(ctx context.Context, key string, r io.Reader, _ storage.PutOptions) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if strings.HasSuffix(key, sidecarEnding) {
		return b.seal(ctx, key, r)
	}
	_, format, encrypted, ok := archive.Detect(key)
	if !ok || encrypted {
		return fmt.Errorf("%s cannot be kept in the CMS's layout", key)
	}
	w := &botbleWriter{Botble: b, ctx: ctx}
	err := archive.Read(ctx, r, format, false, nil, w.visit)
	if err = errors.Join(err, w.finish(err)); err != nil {
		if w.folder != "" {
			err = errors.Join(err, b.removeFolder(context.WithoutCancel(ctx), w.folder))
		}
		return fmt.Errorf("writing the CMS's own layout: %w", err)
	}
	return nil
}

// botbleWriter takes one archive apart.
type botbleWriter struct {
	*Botble
	ctx    context.Context
	folder string
	zip    *zip.Writer
	pipe   *io.PipeWriter
	name   string // of the open zip file: database, routines or storage
	entry  io.Writer
	done   chan error
}

func (w *botbleWriter) visit(e archive.Entry, content io.Reader) error {
	switch {
	case e.Name == headerName:
		return w.begin(e, content)
	case strings.HasPrefix(e.Name, databaseFolder):
		return w.sql("database", content)
	case strings.HasPrefix(e.Name, routinesFolder):
		return w.sql("routines", content)
	case strings.HasPrefix(e.Name, filesFolder+w.uploads+"/"):
		if err := w.open("storage"); err != nil {
			return err
		}
		h := &zip.FileHeader{Name: strings.TrimPrefix(e.Name, filesFolder+w.uploads+"/"), Method: zip.Deflate, Modified: e.Modified}
		entry, err := w.zip.CreateHeader(h)
		if err != nil {
			return err
		}
		_, err = io.Copy(entry, content)
		return err
	}
	return nil
}

func (w *botbleWriter) begin(e archive.Entry, content io.Reader) error {
	var header *Header
	if err := decodeEntry(content, &header); err != nil {
		return err
	}
	if header.Engine != mysqlEngine && header.Database {
		return fmt.Errorf("the CMS restores MySQL only, this is a backup of %s", header.Engine)
	}
	zone, err := w.zone(w.ctx)
	if err != nil {
		return err
	}
	folder := header.Started.In(zone).Format(botbleKey)
	mark := folder + "/" + botbleMark
	if _, err := w.store.Stat(w.ctx, mark); err == nil {
		return fmt.Errorf("the backup %s is there already", folder)
	}
	w.folder = folder
	// The mark comes first: a sweep knows what a killed writer left.
	return w.store.Put(w.ctx, mark, strings.NewReader("{}\n"), storage.PutOptions{Public: w.public})
}

func (w *botbleWriter) sql(name string, content io.Reader) error {
	if err := w.open(name); err != nil {
		return err
	}
	if w.entry == nil {
		var err error
		if w.entry, err = w.zip.Create(name + "-" + w.folder + ".sql"); err != nil {
			return err
		}
	}
	_, err := io.Copy(w.entry, content)
	return err
}

// open makes name the zip file that is being written.
func (w *botbleWriter) open(name string) error {
	if w.name == name {
		return nil
	}
	if w.folder == "" {
		return errors.New("the archive has no header")
	}
	if err := w.close(nil); err != nil {
		return err
	}
	r, pipe := io.Pipe()
	w.name, w.pipe, w.zip, w.entry, w.done = name, pipe, zip.NewWriter(pipe), nil, make(chan error, 1)
	key := fmt.Sprintf("%s/%s-%s.zip", w.folder, name, w.folder)
	go func() {
		err := w.store.Put(w.ctx, key, r, storage.PutOptions{ContentType: "application/zip", Public: w.public})
		r.CloseWithError(cause(err))
		w.done <- err
	}()
	return nil
}

// cause keeps a writer from seeing a success of its reader as none.
func cause(err error) error {
	if err == nil {
		return io.ErrClosedPipe
	}
	return err
}

// close ends the open zip file; failed is why it is to be thrown away.
func (w *botbleWriter) close(failed error) error {
	if w.zip == nil {
		return nil
	}
	var err error
	if failed == nil {
		err = w.zip.Close()
	}
	w.pipe.CloseWithError(cmpError(failed, err))
	putErr := <-w.done
	w.zip, w.name = nil, ""
	if failed != nil {
		return nil // the caller has the reason already
	}
	return errors.Join(putErr, err)
}

func cmpError(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

func (w *botbleWriter) finish(failed error) error {
	err := w.close(failed)
	if failed == nil && w.folder == "" {
		return errors.New("the archive has no header")
	}
	return err
}

// botbleEntry is one value of backup.json.
type botbleEntry struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Date        string `json:"date"`
}

// seal writes our sidecar and names a good backup in backup.json.
func (b *Botble) seal(ctx context.Context, key string, r io.Reader) error {
	data, err := io.ReadAll(io.LimitReader(r, maxSidecar))
	if err != nil {
		return err
	}
	var side Sidecar
	if err := json.Unmarshal(data, &side); err != nil {
		return err
	}
	zone, err := b.zone(ctx)
	if err != nil {
		return err
	}
	started := side.Started.In(zone)
	folder := started.Format(botbleKey)
	marked, err := json.Marshal(botbleMarked{Key: key, Sidecar: data})
	if err != nil {
		return err
	}
	if err := b.store.Put(ctx, folder+"/"+botbleMark, bytes.NewReader(marked), storage.PutOptions{Public: b.public}); err != nil {
		return err
	}
	if side.Status != Good {
		return nil // the CMS's restore would destroy what such a backup lacks
	}
	name := side.Name
	if name == "" {
		name = "cmsjobs " + started.Format(time.DateTime)
	}
	return b.index(ctx, func(index map[string]json.RawMessage) error {
		entry, err := json.Marshal(botbleEntry{name, "cmsjobs " + side.ID, started.Format(time.DateTime)})
		index[folder] = entry
		return err
	})
}

// botbleMarked is cmsjobs.json.
type botbleMarked struct {
	Key     string          `json:"key"`
	Sidecar json.RawMessage `json:"sidecar"`
}

// index changes backup.json as a whole and keeps what others wrote into it.
func (b *Botble) index(ctx context.Context, change func(map[string]json.RawMessage) error) error {
	index := map[string]json.RawMessage{}
	data, err := b.read(ctx, botbleIndex)
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return err
	}
	// PHP writes an empty object as [].
	if text := strings.TrimSpace(string(data)); text != "" && text != "[]" {
		if err := json.Unmarshal(data, &index); err != nil {
			return fmt.Errorf("%s of the CMS cannot be read: %w", botbleIndex, err)
		}
	}
	if err := change(index); err != nil {
		return err
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "    ")
	if err := encoder.Encode(index); err != nil {
		return err
	}
	return b.store.Put(ctx, botbleIndex, &out, storage.PutOptions{Public: b.public})
}

func (b *Botble) read(ctx context.Context, key string) ([]byte, error) {
	body, _, err := b.store.Open(ctx, key)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	return io.ReadAll(io.LimitReader(body, maxSidecar))
}

// ours finds our backups by their marks: folders by the sidecars' keys. Marks
// without a sidecar, of backups that did not end, are under "".
func (b *Botble) ours(ctx context.Context) (map[string]string, map[string]botbleMarked, []storage.Info, error) {
	folders, marks := map[string]string{}, map[string]botbleMarked{}
	var unfinished []storage.Info
	for info, err := range b.store.List(ctx, "") {
		if err != nil {
			return nil, nil, nil, err
		}
		folder, name, _ := strings.Cut(info.Key, "/")
		if name != botbleMark || !botbleFolder.MatchString(folder) {
			continue
		}
		data, err := b.read(ctx, info.Key)
		if err != nil {
			return nil, nil, nil, err
		}
		var marked botbleMarked
		if err := json.Unmarshal(data, &marked); err != nil || marked.Key == "" {
			unfinished = append(unfinished, info)
			continue
		}
		folders[marked.Key], marks[marked.Key] = folder, marked
	}
	return folders, marks, unfinished, nil
}

// List yields the sidecars of our backups.
func (b *Botble) List(ctx context.Context, prefix string) iter.Seq2[storage.Info, error] {
	return func(yield func(storage.Info, error) bool) {
		_, marks, _, err := b.ours(ctx)
		if err != nil {
			yield(storage.Info{}, err)
			return
		}
		var keys []string
		for key := range marks {
			if strings.HasPrefix(key, prefix) {
				keys = append(keys, key)
			}
		}
		slices.Sort(keys)
		for _, key := range keys {
			if !yield(storage.Info{Key: key, Size: int64(len(marks[key].Sidecar))}, nil) {
				return
			}
		}
	}
}

// Open opens a sidecar. Archives cannot be put together again.
func (b *Botble) Open(ctx context.Context, key string) (io.ReadCloser, storage.Info, error) {
	_, marks, _, err := b.ours(ctx)
	if err != nil {
		return nil, storage.Info{}, err
	}
	if m, ok := marks[key]; ok {
		return io.NopCloser(bytes.NewReader(m.Sidecar)), storage.Info{Key: key, Size: int64(len(m.Sidecar))}, nil
	}
	return nil, storage.Info{}, fmt.Errorf("%s is kept as the CMS's own files; take it from another destination: %w", key, storage.ErrNotFound)
}

// Stat describes a sidecar.
func (b *Botble) Stat(ctx context.Context, key string) (storage.Info, error) {
	body, info, err := b.Open(ctx, key)
	if err != nil {
		return info, err
	}
	return info, body.Close()
}

// Delete removes a backup of ours when it is asked to remove its archive.
func (b *Botble) Delete(ctx context.Context, key string) error {
	base, _, _, isArchive := archive.Detect(key)
	if !isArchive {
		return nil // the sidecar goes with the archive
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	folders, _, _, err := b.ours(ctx)
	if err != nil {
		return err
	}
	folder, there := folders[base+sidecarEnding]
	if !there {
		return nil
	}
	return b.removeFolder(ctx, folder)
}

// removeFolder takes a backup out of backup.json, then removes its files, the
// mark last.
func (b *Botble) removeFolder(ctx context.Context, folder string) error {
	if _, err := b.store.Stat(ctx, botbleIndex); err == nil {
		if err := b.index(ctx, func(index map[string]json.RawMessage) error { delete(index, folder); return nil }); err != nil {
			return err
		}
	}
	for _, name := range []string{"database", "routines", "storage"} {
		if err := b.store.Delete(ctx, fmt.Sprintf("%s/%s-%s.zip", folder, name, folder)); err != nil {
			return err
		}
	}
	return b.store.Delete(ctx, folder+"/"+botbleMark)
}

// Sweep removes what killed backups of ours left.
func (b *Botble) Sweep(ctx context.Context, _ string, before time.Time) (removed int, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, _, unfinished, err := b.ours(ctx)
	if err != nil {
		return 0, err
	}
	for _, info := range unfinished {
		if info.Modified.Before(before) {
			folder, _, _ := strings.Cut(info.Key, "/")
			if err := b.removeFolder(ctx, folder); err != nil {
				return removed, err
			}
			removed++
		}
	}
	if s, ok := b.store.(sweeper); ok {
		n, err := s.Sweep(ctx, "", before)
		return removed + n, err
	}
	return removed, nil
}
