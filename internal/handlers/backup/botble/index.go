package botble

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
	"github.com/cmsjobs/cmsjobs/internal/storage"
)

// indexed is one value of backup.json.
type indexed struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Date        string `json:"date"`
}

// complete writes our manifest file and names a complete backup in backup.json.
func (b *Store) complete(ctx context.Context, key string, r io.Reader) error {
	data, err := io.ReadAll(io.LimitReader(r, manifest.MaxSize))
	if err != nil {
		return err
	}
	var side manifest.File
	if err := json.Unmarshal(data, &side); err != nil {
		return err
	}
	zone, err := b.zone(ctx)
	if err != nil {
		return err
	}
	started := side.Started.In(zone)
	folder := started.Format(keyLayout)
	marked, err := json.Marshal(mark{Key: key, ManifestFile: data})
	if err != nil {
		return err
	}
	if err := b.store.Put(ctx, folder+"/"+markName, bytes.NewReader(marked), storage.PutOptions{
		Public: b.public}); err != nil {
		return err
	}
	if side.Status != manifest.Complete {
		return nil // the CMS's restore would destroy what such a backup lacks
	}
	name := side.Name
	if name == "" {
		name = "cmsjobs " + started.Format(time.DateTime)
	}
	return b.index(ctx, func(index map[string]json.RawMessage) error {
		entry, err := json.Marshal(indexed{name, "cmsjobs " + side.ID, started.Format(time.DateTime)})
		index[folder] = entry
		return err
	})
}

// mark is cmsjobs.json.
type mark struct {
	Key          string          `json:"key"`
	ManifestFile json.RawMessage `json:"manifest"`
}

// index changes backup.json as a whole and keeps what others wrote into it.
func (b *Store) index(ctx context.Context, change func(map[string]json.RawMessage) error) error {
	index := map[string]json.RawMessage{}
	data, err := b.read(ctx, indexName)
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return err
	}
	// PHP writes an empty object as [].
	if text := strings.TrimSpace(string(data)); text != "" && text != "[]" {
		if err := json.Unmarshal(data, &index); err != nil {
			return fmt.Errorf("%s of the CMS cannot be read: %w", indexName, err)
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
	return b.store.Put(ctx, indexName, &out, storage.PutOptions{Public: b.public})
}

func (b *Store) read(ctx context.Context, key string) ([]byte, error) {
	body, _, err := b.store.Open(ctx, key)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	return io.ReadAll(io.LimitReader(body, manifest.MaxSize))
}

// ours finds our backups by their marks: folders by the manifest files' keys. Marks
// without a manifest file, of backups that did not end, are under "".
func (b *Store) ours(ctx context.Context) (map[string]string, map[string]mark, []storage.Info, error) {
	folders, marks := map[string]string{}, map[string]mark{}
	var unfinished []storage.Info
	for info, err := range b.store.List(ctx, "") {
		if err != nil {
			return nil, nil, nil, err
		}
		folder, name, _ := strings.Cut(info.Key, "/")
		if name != markName || !folderName.MatchString(folder) {
			continue
		}
		data, err := b.read(ctx, info.Key)
		if err != nil {
			return nil, nil, nil, err
		}
		var marked mark
		if err := json.Unmarshal(data, &marked); err != nil || marked.Key == "" {
			unfinished = append(unfinished, info)
			continue
		}
		folders[marked.Key], marks[marked.Key] = folder, marked
	}
	return folders, marks, unfinished, nil
}

// removeFolder takes a backup out of backup.json, then removes its files, the
// mark last.
func (b *Store) removeFolder(ctx context.Context, folder string) error {
	if _, err := b.store.Stat(ctx, indexName); err == nil {
		if err := b.index(ctx, func(index map[string]json.RawMessage) error {
			delete(index, folder)
			return nil
		}); err != nil {
			return err
		}
	}
	for _, name := range []string{"database", "routines", "storage"} {
		if err := b.store.Delete(ctx, fmt.Sprintf("%s/%s-%s.zip", folder, name, folder)); err != nil {
			return err
		}
	}
	return b.store.Delete(ctx, folder+"/"+markName)
}
