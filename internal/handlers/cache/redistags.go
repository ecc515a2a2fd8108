package cache

import (
	"context"
	"errors"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Laravel keeps what it tagged in Redis in two ways, both seen with its own
// RedisStore (8.83, 9.52, 10.50, 11.56, 12.67, 13.26):
//
//   - up to 9, "tag:NAME:key" holds an id, and the sets "ID:standard_ref" and
//     "ID:forever_ref" the keys of the entries with the cache's prefix;
//   - since 10, the sorted set "tag:NAME:entries" holds the keys of the entries
//     without a prefix.
//
// An id or an entry that is left behind is harmless: its entries are gone.

// forgetTags removes the entries with any of the tags, and the tags.
func (s redisStore) forgetTags(ctx context.Context, tags []string, r *Report) (there []string, err error) {
	if len(tags) == 0 {
		return nil, nil
	}
	err = s.with(func(c redis.UniversalClient) error {
		for _, prefix := range s.Prefixes {
			for _, tag := range tags {
				sorted, err := s.forgetSortedTag(ctx, c, prefix, tag, r)
				if err != nil {
					return err
				}
				sets, err := s.forgetSetTag(ctx, c, prefix, tag, r)
				if err != nil {
					return err
				}
				if sorted || sets {
					there = append(there, tag)
				}
			}
		}
		return nil
	})
	return there, err
}

// tagBatch is how many entries of a tag are read at once.
const tagBatch = 1000

func (s redisStore) forgetSortedTag(ctx context.Context, c redis.UniversalClient, prefix, tag string,
	r *Report) (there bool, err error) {
	index := prefix + "tag:" + tag + ":entries"
	n, err := c.Exists(ctx, index).Result()
	if err != nil || n == 0 {
		return false, err
	}
	return true, s.forgetMembers(ctx, c, index, prefix, r, func(cursor uint64) ([]string, uint64, error) {
		found, next, err := c.ZScan(ctx, index, cursor, "", tagBatch).Result()
		members := make([]string, 0, len(found)/2)
		for i := 0; i < len(found); i += 2 { // a member and its score
			members = append(members, found[i])
		}
		return members, next, err
	})
}

func (s redisStore) forgetSetTag(ctx context.Context, c redis.UniversalClient, prefix, tag string,
	r *Report) (there bool, err error) {
	key := prefix + "tag:" + tag + ":key"
	value, err := c.Get(ctx, key).Result()
	if errors.Is(err, redis.Nil) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	id, ok := serialisedText(value)
	if !ok {
		return false, nil
	}
	for _, kind := range []string{":standard_ref", ":forever_ref"} {
		index := prefix + id + kind
		err := s.forgetMembers(ctx, c, index, s.connectionPrefix(prefix), r,
			func(cursor uint64) ([]string, uint64, error) {
				return c.SScan(ctx, index, cursor, "", tagBatch).Result()
			})
		if err != nil {
			return true, err
		}
	}
	return true, s.drop(ctx, c, key, r)
}

// forgetMembers removes the entries that an index lists, then the index. Only
// the entries are counted.
func (s redisStore) forgetMembers(ctx context.Context, c redis.UniversalClient, index, prefix string, r *Report,
	scan func(cursor uint64) ([]string, uint64, error),
) error {
	for cursor := uint64(0); ; {
		members, next, err := scan(cursor)
		if err != nil {
			return err
		}
		full := make([]string, len(members))
		for i, member := range members {
			full[i] = prefix + member
		}
		if err := s.unlink(ctx, c, full, r); err != nil {
			return err
		}
		if cursor = next; cursor == 0 {
			return s.drop(ctx, c, index, r)
		}
	}
}

func (s redisStore) drop(ctx context.Context, c redis.UniversalClient, key string, r *Report) error {
	if r.DryRun {
		return nil
	}
	return c.Unlink(ctx, key).Err()
}

// connectionPrefix is the connection's part of a prefix, which Laravel's Redis
// client puts before every key; the members of its sets do not have it.
func (s redisStore) connectionPrefix(prefix string) string {
	for _, connection := range s.ConnectionPrefixes {
		if strings.HasPrefix(prefix, connection) {
			return connection
		}
	}
	return ""
}

// serialisedText reads PHP's s:22:"…"; or a bare number.
func serialisedText(value string) (string, bool) {
	if _, rest, found := strings.Cut(value, `:"`); found && strings.HasPrefix(value, "s:") {
		return strings.CutSuffix(rest, `";`)
	}
	digits := strings.Trim(value, "0123456789") == ""
	return value, digits && value != ""
}
