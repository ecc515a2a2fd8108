package cache

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// The CMS's index of cache groups: class name → keys of its entries, which are
// md5(class)@key (Botble\Support\Services\Cache\Cache). A missing file means to
// the CMS that all groups are empty.
const (
	groupsFolder = "storage"
	groupsFile   = "cache_keys.json"
	maxGroups    = 32 << 20
)

// dropGroups removes the index, as the CMS does when its store was emptied.
func (h *Handler) dropGroups(r *Report) error {
	root, err := h.folder(groupsFolder)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNoFolder) {
		return nil
	}
	if err != nil {
		return err
	}
	defer root.Close()
	if info, err := root.Lstat(groupsFile); err == nil && info.Mode().IsRegular() {
		remove(root, groupsFile, info.Size(), r)
	}
	return nil
}

// clearGroups removes the entries of the given groups and the groups from the
// index.
func (h *Handler) clearGroups(ctx context.Context, s store, groups []string, r *Report) error {
	root, err := h.folder(groupsFolder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // no folder, no groups
	}
	if err != nil {
		return fmt.Errorf("the CMS's cache groups: %w", err)
	}
	defer root.Close()
	index, err := readGroups(root)
	if err != nil {
		return err
	}
	var keys []string
	changed := false
	for _, group := range groups {
		raw, there := index[group]
		if !there {
			continue
		}
		listed, err := keyList(raw)
		if err != nil {
			r.failed("cache group "+group, err)
			continue
		}
		keys = append(keys, listed...)
		delete(index, group)
		changed = true
	}
	if len(keys) > 0 {
		if err := s.forget(ctx, keys, r); err != nil {
			return err
		}
	}
	if !changed || r.DryRun {
		return nil
	}
	return writeGroups(root, index)
}

func readGroups(root *os.Root) (map[string]json.RawMessage, error) {
	index := map[string]json.RawMessage{}
	info, err := root.Lstat(groupsFile)
	if errors.Is(err, fs.ErrNotExist) {
		return index, nil
	}
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxGroups {
		return nil, fmt.Errorf("%s is no plain file or larger than %d bytes", groupsFile, maxGroups)
	}
	f, err := root.Open(groupsFile)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxGroups))
	if err != nil {
		return nil, err
	}
	if text := string(data); text == "" || text == "[]" { // how PHP writes an empty map
		return index, nil
	}
	if err := json.Unmarshal(data, &index); err != nil {
		return nil, fmt.Errorf("%s is not as the CMS writes it: %w", groupsFile, err)
	}
	return index, nil
}

// keyList reads a PHP array of strings: a JSON list, or an object where keys
// were taken out of its middle.
func keyList(raw json.RawMessage) ([]string, error) {
	var list []string
	if json.Unmarshal(raw, &list) == nil {
		return list, nil
	}
	var holes map[string]string
	if err := json.Unmarshal(raw, &holes); err != nil {
		return nil, fmt.Errorf("its keys are not a list: %w", err)
	}
	for _, key := range holes {
		list = append(list, key)
	}
	return list, nil
}

// writeGroups replaces the index in one step, so that PHP reads the old one or
// the new one.
func writeGroups(root *os.Root, index map[string]json.RawMessage) error {
	if len(index) == 0 {
		return root.Remove(groupsFile)
	}
	data, err := json.Marshal(index)
	if err != nil {
		return err
	}
	mode := fs.FileMode(0o644)
	if info, err := root.Lstat(groupsFile); err == nil {
		mode = info.Mode().Perm()
	}
	const fresh = ".cache_keys.cmsjobs"
	if err := root.WriteFile(fresh, data, mode); err != nil {
		return err
	}
	if err := root.Rename(fresh, groupsFile); err != nil {
		return errors.Join(err, root.Remove(fresh))
	}
	return nil
}
