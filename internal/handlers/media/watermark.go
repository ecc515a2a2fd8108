package media

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/cmsjobs/cmsjobs/internal/cms"
	"github.com/cmsjobs/cmsjobs/internal/handlers/media/picture"
	"github.com/cmsjobs/cmsjobs/internal/storage"
)

// newWatermark fills what the options leave open from the CMS's settings; nil
// where nothing is to be stamped by us.
func newWatermark(o *Watermark, settings cms.Settings) *Watermark {
	if o == nil || settings.Bool("media_watermark_enabled", false) {
		return nil
	}
	w := *o
	w.Source = cmp.Or(w.Source, settings["media_watermark_source"])
	w.Percent = cmp.Or(w.Percent, settings.Int("media_watermark_size", 0), 10)
	w.Opacity = cmp.Or(w.Opacity, settings.Int("media_watermark_opacity", 0), 70)
	w.Position = cmp.Or(w.Position, settings["media_watermark_position"], "bottom-right")
	w.X = cmp.Or(w.X, settings.Int("media_watermark_position_x", 10))
	w.Y = cmp.Or(w.Y, settings.Int("media_watermark_position_y", 10))
	if w.Folders == nil {
		w.Folders = folderIDs(settings["media_folders_can_add_watermark"])
	}
	if w.Source == "" {
		return nil
	}
	return &w
}

// folderIDs reads a JSON list of ids, which PHP writes as strings or numbers.
func folderIDs(list string) []string {
	var ids []ID
	if json.Unmarshal([]byte(list), &ids) != nil {
		return nil
	}
	var out []string
	for _, id := range ids {
		out = append(out, string(id))
	}
	return out
}

// readAll reads an object of at most limit bytes.
func readAll(ctx context.Context, store storage.Store, key string, limit int64) ([]byte, error) {
	r, info, err := store.Open(ctx, key)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	var b bytes.Buffer
	if info.Size > 0 && info.Size <= limit {
		b.Grow(int(info.Size) + bytes.MinRead)
	}
	if _, err := b.ReadFrom(io.LimitReader(r, limit+1)); err != nil {
		return nil, err
	}
	if int64(b.Len()) > limit {
		return nil, fmt.Errorf("%w: it has more than %d bytes", picture.ErrTooLarge, limit)
	}
	return b.Bytes(), nil
}
