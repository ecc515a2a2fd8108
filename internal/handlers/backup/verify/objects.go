package verify

import (
	"context"
	"errors"
	"fmt"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/repository"
	"github.com/cmsjobs/cmsjobs/internal/storage"
)

// shareDays is within how many nightly backups every object of a repository is read.
const shareDays = 7

// objects verifies the files of a backup that are in a repository: that every object is
// there in its size, and the bytes of all of them or of a share.
func (r *reading) objects(ctx context.Context) error {
	in := r.stored.Repository
	if in == nil {
		return nil
	}
	if r.stored.WithoutFiles {
		r.note("the files were not read, as only the database is restored")
		return nil
	}
	repo, err := r.config.Catalog.Repository(ctx, r.stored.Destination, false)
	switch {
	case errors.Is(err, repository.ErrNoRepository), errors.Is(err, repository.ErrDamaged):
		return err
	case err != nil:
		return fmt.Errorf("%w: %w", manifest.ErrUnfinished, err)
	case repo.ID() != in.ID:
		r.problem("the repository is another one: %s, and the files are in %s", repo.ID(), in.ID)
		return nil
	}
	q := repository.VerifyRequest{Level: repository.Bytes, Backups: []string{in.Backup}}
	switch {
	case !r.shared && r.level != manifest.LevelBytes:
		q.Level = repository.Present // the contents were read with the archive
	case r.shared:
		q.Of, q.Share, q.Run = shareDays, repository.ShareOfDay(r.config.Now(), shareDays), in.Run
		r.note(fmt.Sprintf("of the files in the repository, what is new and a share of one in %d were read",
			shareDays))
	}
	seen, err := repo.Verify(ctx, q)
	if err != nil {
		return fmt.Errorf("%w: %w", manifest.ErrUnfinished, err)
	}
	for _, p := range seen.Problems {
		if !errors.Is(p.Err, repository.ErrDamaged) && !errors.Is(p.Err, storage.ErrNotFound) {
			return fmt.Errorf("%w: %s: %w", manifest.ErrUnfinished, p.Key, p.Err)
		}
		r.problem("%s in the repository: %v", p.Key, p.Err)
	}
	r.verification.Bytes += seen.Bytes
	return nil
}
