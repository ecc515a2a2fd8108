package restore

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/archive"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/catalog"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/swap"
	"github.com/cmsjobs/cmsjobs/internal/phrase"
)

// PostRequest names one post of the CMS's blog in a backup.
type PostRequest struct {
	Backup catalog.Stored
	ID     int64
	// Confirm is the Token of the answer without it; "" changes nothing.
	Confirm      string
	TrustUnknown bool
	AllowFailed  bool
	// Begin is called when nothing else restores or backs up, before anything is done;
	// its error ends the restore. nil is nothing to ask.
	Begin func(context.Context) error
}

// Post is what a backup has of a post.
type Post struct {
	Backup string `json:"backup"`
	ID     int64  `json:"id"`
	Title  string `json:"title"`
	// Tables are those with rows of the post, now and in the backup.
	Tables []TableChange `json:"tables"`
	// Restored is true when the rows were written.
	Restored bool     `json:"restored"`
	Problems []string `json:"problems,omitempty"`
	Token    string   `json:"token"`
}

// ErrNoPost says that a backup has no post of a number.
var ErrNoPost = errors.New("the backup has no such post")

// rowsOfPost are the rows of a post; the first is the post itself. Rows of any content
// name it by the CMS's name of its type.
func rowsOfPost(engine, prefix string, id int64) []swap.Rows {
	postType := `Botble\Blog\Models\Post`
	if engine == database.MySQL {
		postType = strings.ReplaceAll(postType, `\`, `\\`) // its strings read one as an escape
	}
	ofPost := "reference_id = ? AND reference_type = '" + postType + "'"
	rows := []swap.Rows{
		{Table: "posts", Where: "id = ?"},
		{Table: "slugs", Where: ofPost},
		{Table: "meta_boxes", Where: ofPost},
		{Table: "language_meta", Where: ofPost},
		{Table: "post_categories", Where: "post_id = ?"},
		{Table: "post_tags", Where: "post_id = ?"},
		{Table: "posts_translations", Where: "posts_id = ?"},
	}
	for i := range rows {
		rows[i].Table, rows[i].ID = prefix+rows[i].Table, id
	}
	return rows
}

// rowPlace is a place from which single rows are taken.
type rowPlace interface {
	place
	rows(ctx context.Context, do func(rowTaker) error) error
}

// rowTaker is a database with the loaded rows beside its own.
type rowTaker interface {
	Text(ctx context.Context, s *swap.Set, r swap.Rows, column string) (string, error)
	CountRows(ctx context.Context, s *swap.Set, rows []swap.Rows) ([]swap.RowCount, error)
	TakeRows(ctx context.Context, s *swap.Set, rows []swap.Rows) error
}

// Post brings one post back with its address, meta data, categories, tags and
// translations: its rows in the backup replace its present ones, in one transaction.
// The tables of the backup are loaded beside the live ones for that, those of PostgreSQL
// into a temporary database.
func (r *Restorer) Post(ctx context.Context, q PostRequest, progress func(catalog.Step)) (post Post, err error) {
	post = Post{Backup: q.Backup.ID, ID: q.ID, Token: q.Token()}
	request := Request{Backup: q.Backup, Database: true, TrustUnknown: q.TrustUnknown, AllowFailed: q.AllowFailed}
	request.Backup.WithoutFiles = true
	if err := r.check(request); err != nil {
		return post, err
	}
	if q.Confirm != "" && q.Confirm != post.Token {
		return post, fmt.Errorf("%w: repeat it without --confirm, and type the word that it names", ErrUnconfirmed)
	}
	rows := rowsOfPost(q.Backup.Engine, r.config.TablePrefix, q.ID)
	if q.Backup.Engine == database.MySQL { // the others choose while they load
		for _, t := range rows {
			request.Tables = append(request.Tables, t.Table)
		}
	}
	ctx, unlock, err := r.config.Locks.Exclusive(ctx, fmt.Sprintf("the restore of the post %d of %s", q.ID,
		q.Backup.ID))
	if err != nil {
		return post, err
	}
	defer unlock()
	if q.Begin != nil {
		if err := q.Begin(ctx); err != nil {
			return post, err
		}
	}
	defer r.config.Working()()
	remove, err := r.prepareRows(ctx, &request, progress)
	if err != nil {
		return post, fmt.Errorf("nothing was changed: %w", err)
	}
	defer remove()
	if err := r.restoreRows(ctx, request, rows, &post, q.Confirm != "", progress); err != nil {
		return post, fmt.Errorf("nothing was changed: %w", err)
	}
	return post, nil
}

// Token is what a person types to confirm it.
func (q PostRequest) Token() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s|%s|%d|%v|%v", q.Backup.ID, q.Backup.SHA256, q.ID, q.TrustUnknown,
		q.AllowFailed))
	return fmt.Sprintf("post-%d-%s", q.ID, hex.EncodeToString(sum[:3]))
}

// prepareRows settles what was before, judges the origin, and copies the archive.
func (r *Restorer) prepareRows(ctx context.Context, q *Request, progress func(catalog.Step)) (remove func(),
	err error) {
	if err := errors.Join(r.settleEarlier(ctx), r.judgeOrigin(ctx, q)); err != nil {
		return nil, err
	}
	q.Backup, remove, err = r.stage(ctx, q.Backup, progress)
	return remove, err
}

// restoreRows loads the tables beside the live ones, takes the rows, and removes the
// loaded tables. A process that dies leaves a journal by which they are removed.
func (r *Restorer) restoreRows(ctx context.Context, q Request, rows []swap.Rows, post *Post, write bool,
	progress func(catalog.Step)) (err error) {
	e, err := r.begin(ctx, q, "")
	if err != nil {
		return err
	}
	p, err := r.rowPlaceOf(e, rows)
	if err != nil {
		return errors.Join(err, r.undo(context.WithoutCancel(ctx), e))
	}
	defer func() {
		p.abort()
		err = errors.Join(err, r.undo(context.WithoutCancel(ctx), e))
	}()
	w := writer{request: q, done: &Result{}, kept: true}
	if w.load, err = p.load(ctx, q); err != nil {
		return err
	}
	if err := r.config.Catalog.Read(ctx, q.Backup, progress, func(a archive.Entry, content io.Reader) error {
		return w.entry(ctx, a, content)
	}); err != nil {
		return err
	}
	if post.Problems, err = p.ready(ctx, w.manifest); err != nil {
		return err
	}
	return p.rows(ctx, func(db rowTaker) error {
		set := &e.detail.Set
		if post.Title, err = db.Text(ctx, set, rows[0], "name"); err != nil {
			if errors.Is(err, sql.ErrNoRows) {
				err = ErrNoPost
			}
			return fmt.Errorf("looking for the post %d: %w", post.ID, err)
		}
		counts, err := db.CountRows(ctx, set, rows)
		if err != nil {
			return err
		}
		for _, c := range counts {
			post.Tables = append(post.Tables, TableChange{Name: c.Table, RowsNow: c.Live, RowsBackup: c.Staged})
		}
		if !write {
			return nil
		}
		post.Restored = true
		return db.TakeRows(ctx, set, rows)
	})
}

func (r *Restorer) rowPlaceOf(e *entry, rows []swap.Rows) (rowPlace, error) {
	p, err := r.placeOf(e)
	if err != nil {
		return nil, err
	}
	if postgres, is := p.(*postgresPlace); is {
		single := &postgresRows{postgresPlace: postgres}
		for _, t := range rows {
			single.tables = append(single.tables, t.Table)
		}
		return single, nil
	}
	single, can := p.(rowPlace)
	if !can {
		return nil, fmt.Errorf("no single rows can be restored into a database of %s", e.detail.Engine)
	}
	return single, nil
}

// Summary implements jobs.Summarizer.
func (p Post) Summary() (s phrase.Summary) {
	if p.Restored {
		s.Say("Restored the post %s (%s) of the backup %s.", p.Title, p.ID, p.Backup)
	} else {
		s.Say("The post %s was not restored.", p.ID)
	}
	phrase.List(&s, phrase.Columns("Table", "Rows before", "Rows in the backup"), p.Tables, func(t TableChange) []any {
		return []any{t.Name, max(t.RowsNow, 0), max(t.RowsBackup, 0)}
	})
	phrase.Lines(&s, phrase.Columns("Problem"), p.Problems)
	return s
}
