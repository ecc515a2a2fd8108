package repository

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// Remove deletes the repository if it holds nothing but what one backup wrote: its
// record and the objects of its run. Otherwise it deletes nothing and returns false.
// One that was interrupted is finished by the next. A folder's empty folders stay.
func (r *Repository) Remove(ctx context.Context, backup, run string) (removed bool, err error) {
	ctx, l, err := r.acquire(ctx, forCollect)
	if err != nil {
		return false, err
	}
	defer l.release(ctx)
	var records, objects []string
	for info, err := range r.store.List(ctx, "") {
		if err != nil {
			return false, fmt.Errorf("listing the repository: %w", err)
		}
		object, isObject := objectOf(info.Key)
		switch {
		case isObject && runOf(object) == run:
			objects = append(objects, info.Key)
		case info.Key == backupsFolder+backup+recordEnd:
			records = append(records, info.Key)
		case info.Key != formatKey && info.Key != restoreKey && info.Key != l.key &&
			!strings.HasPrefix(info.Key, ended("")):
			return false, nil
		}
	}
	if err := l.confirm(ctx); err != nil {
		return false, err
	}
	// The record first, so that it never names what is gone; format.txt last, so that it
	// is a repository until then.
	for _, keys := range [][]string{records, objects, {restoreKey}, {formatKey}} {
		for some := range slices.Chunk(keys, page) {
			if err := r.store.deleteAll(ctx, some); err != nil {
				return false, fmt.Errorf("deleting the repository: %w", cause(ctx, err))
			}
		}
	}
	return true, nil
}
