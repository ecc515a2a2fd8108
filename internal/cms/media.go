package cms

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/database"
)

// ErrNoMedia says that no row of media_files is meant, or that it was deleted.
var ErrNoMedia = errors.New("the CMS has no such media file")

// MediaFile is a row of media_files.
type MediaFile struct {
	ID       string `db:"id"`
	Name     string `db:"name"`
	FolderID string `db:"folder_id"`
	// MIME is what the CMS believes; the bytes may say otherwise.
	MIME string `db:"mime_type"`
	// URL is the path under the upload place ("news/1.jpg") as the row has it;
	// MediaPlace.Names reads it.
	URL string `db:"url"`
	// Options is JSON as it stands in the row, "" for NULL.
	Options string `db:"options"`
	// Private files are not for the public (visibility, CMS 7.x).
	Private bool `db:"private"`
}

// MediaFilter chooses rows; zero fields choose all.
type MediaFilter struct {
	IDs    []string
	Folder string // the id of a folder
	// Since keeps rows made or changed at or after it.
	Since time.Time
	// After keeps rows whose id comes after it: where an earlier run stopped.
	After string
	// Bin adds the rows that lie in the CMS's bin, which may come back.
	Bin bool
}

// selectMedia is the SELECT that fits the columns this version of the CMS has.
func (s *Site) selectMedia(ctx context.Context, bin bool) (string, error) {
	columns, err := s.Columns(ctx, "media_files")
	if err != nil {
		return "", err
	}
	if len(columns) == 0 {
		return "", fmt.Errorf("the CMS's database has no table %s", s.Table("media_files"))
	}
	private := "0"
	if _, there := columns["visibility"]; there {
		private = "CASE WHEN visibility = 'private' THEN 1 ELSE 0 END"
	}
	alive := "1 = 1"
	if _, there := columns["deleted_at"]; there && !bin {
		alive = "deleted_at IS NULL"
	}
	return fmt.Sprintf(`SELECT id, name, COALESCE(folder_id, 0) AS folder_id, COALESCE(mime_type, '') AS mime_type, url,
		COALESCE(options, '') AS options, %s AS private FROM %s WHERE %s`, private, s.quote(s.Table("media_files")),
		alive), nil
}

// MediaFile finds a row by its id, or by its URL where id is empty. ErrNoMedia
// when there is none or it lies in the CMS's bin.
func (s *Site) MediaFile(ctx context.Context, id, url string) (MediaFile, error) {
	query, err := s.selectMedia(ctx, false)
	if err != nil {
		return MediaFile{}, err
	}
	column, value, where, args := "id", id, " AND id = ?", []any{id}
	if id == "" {
		column, value = "url", path.Clean(strings.TrimPrefix(strings.TrimLeft(url, "/"), "storage/"))
		where, args = " AND url IN (?, ?, ?)", []any{value, "./" + value, url}
	}
	var m MediaFile
	err = s.DB.GetContext(ctx, &m, s.DB.Rebind(query+where+" ORDER BY id LIMIT 1"), args...)
	if errors.Is(err, sql.ErrNoRows) {
		return MediaFile{}, fmt.Errorf("%w: %s %s", ErrNoMedia, column, value)
	}
	if err != nil {
		return MediaFile{}, fmt.Errorf("reading media file %s: %w", value, err)
	}
	return m, nil
}

// MediaFiles gives up to limit rows in the order of their ids.
func (s *Site) MediaFiles(ctx context.Context, f MediaFilter, limit int) ([]MediaFile, error) {
	query, err := s.selectMedia(ctx, f.Bin)
	if err != nil {
		return nil, err
	}
	where, args, err := s.mediaWhere(ctx, f)
	if err != nil {
		return nil, err
	}
	var rows []MediaFile
	query = s.DB.Rebind(query + where + " ORDER BY id LIMIT ?")
	if err := s.DB.SelectContext(ctx, &rows, query, append(args, limit)...); err != nil {
		return nil, fmt.Errorf("listing media files: %w", err)
	}
	return rows, nil
}

// CountMediaFiles counts the rows that f chooses.
func (s *Site) CountMediaFiles(ctx context.Context, f MediaFilter) (int64, error) {
	query, err := s.selectMedia(ctx, f.Bin)
	if err != nil {
		return 0, err
	}
	where, args, err := s.mediaWhere(ctx, f)
	if err != nil {
		return 0, err
	}
	var n int64
	if err := s.DB.GetContext(ctx, &n, s.DB.Rebind("SELECT COUNT(*) FROM ("+query+where+") AS chosen"),
		args...); err != nil {
		return 0, fmt.Errorf("counting media files: %w", err)
	}
	return n, nil
}

func (s *Site) mediaWhere(ctx context.Context, f MediaFilter) (where string, args []any, err error) {
	if len(f.IDs) > 0 {
		in, values, err := sqlx.In(" AND id IN (?)", f.IDs)
		if err != nil {
			return "", nil, fmt.Errorf("choosing media files: %w", err)
		}
		where, args = in, values
	}
	if f.Folder != "" {
		where, args = where+" AND folder_id = ?", append(args, f.Folder)
	}
	if f.After != "" {
		where, args = where+" AND id > ?", append(args, f.After)
	}
	if !f.Since.IsZero() {
		zone, err := s.Zone(ctx)
		if err != nil {
			return "", nil, err
		}
		wall := f.Since.In(zone).Format(time.DateTime)
		where, args = where+" AND (created_at >= ? OR updated_at >= ?)", append(args, wall, wall)
	}
	return where, args, nil
}

// SetMediaOption writes value under key of a row's options and keeps all other
// keys as they are. A nil value removes the key. Options that are no JSON object
// (the CMS writes "[]") begin as an empty one. It compares and sets, so a write
// of the CMS at the same moment is not lost.
func (s *Site) SetMediaOption(ctx context.Context, id, key string, value any) error {
	const tries = 5
	table := s.quote(s.Table("media_files"))
	read := s.DB.Rebind("SELECT options FROM " + table + " WHERE id = ?")
	for range tries {
		var old sql.NullString
		if err := s.DB.GetContext(ctx, &old, read, id); errors.Is(err, sql.ErrNoRows) {
			return fmt.Errorf("%w: id %s", ErrNoMedia, id)
		} else if err != nil {
			return fmt.Errorf("reading the options of media file %s: %w", id, err)
		}
		merged, err := mergeOption(old.String, key, value)
		if err != nil {
			return fmt.Errorf("changing the options of media file %s: %w", id, err)
		}
		if old.Valid && merged == old.String {
			return nil
		}
		write, args := "UPDATE "+table+" SET options = ? WHERE id = ? AND options IS NULL", []any{merged, id}
		if old.Valid {
			write, args = "UPDATE "+table+" SET options = ? WHERE id = ? AND "+database.Of(s.DB).SameBytes("options"),
				append(args, old.String)
		}
		result, err := s.DB.ExecContext(ctx, s.DB.Rebind(write), args...)
		if err != nil {
			return fmt.Errorf("writing the options of media file %s: %w", id, err)
		}
		if n, err := result.RowsAffected(); err != nil || n > 0 {
			return err
		}
	}
	return fmt.Errorf("the options of media file %s changed %d times while they were written", id, tries)
}

func mergeOption(old, key string, value any) (string, error) {
	options := map[string]json.RawMessage{}
	// What is no object has no keys to keep.
	if json.Unmarshal([]byte(old), &options) != nil || options == nil {
		options = map[string]json.RawMessage{}
	}
	delete(options, key)
	if value != nil {
		raw, err := json.Marshal(value)
		if err != nil {
			return "", err
		}
		options[key] = raw
	}
	merged, err := json.Marshal(options)
	return string(merged), err
}
