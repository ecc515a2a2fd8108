package media

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/cmsjobs/cmsjobs/internal/storage"
)

const (
	// lookedAt is how many files are looked at to learn the sizes.
	lookedAt = 2000
	// common is the part of the most frequent size's count that a size needs
	// to be taken for one of the CMS's own.
	common = 5
)

// siblingSizes learns which sizes a CMS makes from the thumbnails that lie
// beside their originals (name-150x150.jpg beside name.jpg): for sites whose
// code, which names the sizes, cannot be read here.
func siblingSizes(ctx context.Context, store storage.Store, prefix string) ([]Size, error) {
	keys := map[string]bool{}
	for info, err := range store.List(ctx, prefix) {
		if err != nil {
			return nil, fmt.Errorf("looking for sizes of thumbnails: %w", err)
		}
		if keys[info.Key] = true; len(keys) >= lookedAt {
			break
		}
	}
	counts, most := map[Size]int{}, 0
	for key := range keys {
		dir, name := path.Split(key)
		m := thumbnailName.FindStringSubmatch(name)
		if m == nil || !keys[dir+m[1]+m[2]] {
			continue
		}
		if s, ok := sizeOf(strings.TrimPrefix(name, m[1]+"-")); ok {
			counts[s]++
			most = max(most, counts[s])
		}
	}
	var sizes []Size
	for s, n := range counts {
		if n >= 2 && n*common >= most {
			sizes = append(sizes, s)
		}
	}
	slices.SortFunc(sizes, func(a, b Size) int { return strings.Compare(a.Name, b.Name) })
	return sizes, nil
}

// sizeOf reads "150x150.jpg" or "400xauto.jpg".
func sizeOf(s string) (Size, bool) {
	s, _, _ = strings.Cut(s, ".")
	w, h, _ := strings.Cut(s, "x")
	size := Size{Name: s, Enlarge: true}
	var ok, okToo bool
	size.Width, ok = sideOf(w)
	size.Height, okToo = sideOf(h)
	return size, ok && okToo && (size.Width > 0 || size.Height > 0)
}

func sideOf(s string) (int, bool) {
	if s == "auto" {
		return 0, true
	}
	n, err := strconv.Atoi(s)
	return n, err == nil && n >= 1 && n <= 16383
}
