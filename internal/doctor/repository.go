package doctor

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/app"
	"github.com/cmsjobs/cmsjobs/internal/conditions"
	"github.com/cmsjobs/cmsjobs/internal/display"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup"
	"github.com/cmsjobs/cmsjobs/internal/storage"
)

// checkRepository looks at the repositories of files of backups. The page of backups
// says the same in the reader's language.
func checkRepository(ctx context.Context, r *app.Services) ([]Finding, error) {
	h := r.Handlers.Backup
	if h == nil {
		return nil, nil // checkBackups says so
	}
	states, err := h.Repositories(ctx)
	if err != nil {
		return nil, err
	}
	var found []Finding
	for _, s := range states {
		for _, p := range s.Problems {
			found = append(found, repositoryProblem(s, p, r.Now()))
		}
		if len(s.Problems) == 0 {
			found = append(found, repositoryStands(s, r.Now()))
		}
	}
	return found, nil
}

func repositoryStands(s backup.RepositoryState, now time.Time) Finding {
	if !s.Exists {
		return ok("there is no repository at %s yet: the next backup makes it", s.Destination)
	}
	verified, key := say(", none of them verified yet"), say("")
	if !s.Verified.IsZero() {
		verified = say(", the last one verified %s", display.Ago(s.Verified, now))
	}
	if s.NoKey {
		key = say("; it is encrypted and no identity is here (backup.age_identities), so keep the key safe elsewhere")
	}
	return ok("the repository at %s has %d {backup|backups}%s%s", s.Destination, s.Backups, verified, key)
}

func repositoryProblem(s backup.RepositoryState, p backup.RepositoryProblem, now time.Time) Finding {
	switch p.Fault {
	case backup.RepositoryDamaged:
		return fail("cmsjobs backup verify says which backups are affected; rename the folder repository there, and "+
			"the next backup makes a new one (docs/backup.md)", "the repository at %s is damaged: %s", s.Destination,
			p.Detail)
	case backup.RepositoryLocked:
		return fail("name the file of the right age identity in backup.age_identities",
			"no age identity here opens the repository at %s: %s", s.Destination, p.Detail)
	case backup.RepositoryHeld:
		return warn("cmsjobs backup prune removes it, once no other process uses the repository",
			"a process that died left a lock in the repository at %s: %s", s.Destination, p.Detail)
	case backup.RepositoryUnverified:
		f := warn("cmsjobs backup verify", "the files in the repository at %s were last verified %s, and that is due "+
			"every %s {day|days}", s.Destination, display.Ago(s.Verified, now), p.Detail)
		if s.Verified.IsZero() {
			f = warn("cmsjobs backup verify", "the files in the repository at %s were never verified", s.Destination)
		}
		f.condition = conditions.VerificationOld
		return f
	}
	return fail("check that the destination answers, and the rights of this account there (backup.dir, storage.s3)",
		"the repository at %s cannot be read: %s", s.Destination, p.Detail)
}

// spaceTime is how long the look at all files of the site may take.
const spaceTime = 30 * time.Second

// checkBackupSpace says whether the next backup fits where it goes.
func checkBackupSpace(ctx context.Context, r *app.Services) ([]Finding, error) {
	if r.Handlers.Backup == nil {
		return nil, nil
	}
	inTime, cancel := context.WithTimeout(ctx, spaceTime)
	defer cancel()
	short, err := r.Handlers.Backup.Shortages(inTime)
	if err != nil && errors.Is(inTime.Err(), context.DeadlineExceeded) && ctx.Err() == nil {
		return []Finding{ok("whether the next backup fits was not found out in %s: there are many files; cmsjobs "+
			"backup create says it first", display.Span(spaceTime))}, nil
	}
	if err != nil {
		return nil, err
	}
	var found []Finding
	for _, name := range slices.Sorted(maps.Keys(short)) {
		found = append(found, fail("free space there, lower backup.keep, weekly or monthly, or raise "+
			"backup.max_total; then cmsjobs backup prune", "the next backup does not fit at %s: %v", name, short[name]))
	}
	if len(found) == 0 {
		found = append(found, ok("the next backup fits at its destinations"))
	}
	return found, nil
}

// protectionTime is how long buckets may take to say how they protect backups.
const protectionTime = 15 * time.Second

// protections say which buckets keep backups that somebody on this host deletes.
func protections(ctx context.Context, h *backup.Handler) (found []Finding) {
	ctx, cancel := context.WithTimeout(ctx, protectionTime)
	defer cancel()
	known, err := h.Protections(ctx)
	for _, name := range slices.Sorted(maps.Keys(known)) {
		found = append(found, protection(name, known[name]))
	}
	if err != nil {
		found = append(found, ok("whether backups are protected against deletion is not known: %v", err))
	}
	return found
}

func protection(destination string, p storage.Protection) Finding {
	days := int(p.For / (24 * time.Hour))
	switch {
	case p.Strong():
		return ok("%s locks each new object for %d days: nobody deletes it before", destination, days)
	case p.For > 0:
		return ok("%s locks each new object for %d days (%s): only who may lift locks deletes it before", destination,
			days, strings.ToLower(p.Mode))
	case p.Versions:
		return ok("%s keeps deleted objects as older versions, without a lock: who may delete versions deletes backups",
			destination)
	}
	return ok("%s keeps neither versions nor locks: who has the keys of this host can delete the backups there "+
		"(docs/backup.md, Places)", destination)
}
