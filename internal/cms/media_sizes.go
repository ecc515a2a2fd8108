package cms

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// MediaSize is a size of thumbnails that the CMS knows by name. A side of 0 is
// "auto": it keeps the proportions.
type MediaSize struct {
	Name          string
	Width, Height int
}

// maxPHP bounds what is read of one PHP file.
const maxPHP = 1 << 20

var (
	configSizes = regexp.MustCompile(`(?s)['"]sizes['"]\s*=>\s*(?:\[|array\s*\()(.*?)(?:\]|\))`)
	configSize  = regexp.MustCompile(`['"]([\w-]+)['"]\s*=>\s*['"](\d+|auto)x(\d+|auto)['"]`)
	addSize     = regexp.MustCompile(
		`addSize\s*\(\s*['"]([\w-]+)['"]\s*,\s*['"]?(\d+|auto|null)['"]?\s*(?:,\s*['"]?(\d+|auto|null)['"]?\s*)?,?\s*\)`)
	folderName = regexp.MustCompile(`^[\w.-]+$`)
)

// MediaSizes lists the sizes of thumbnails: the core's (150×150, or what its
// configuration file says), those that the active theme and plugins add by
// RvMedia::addSize, changed by the settings media_sizes_<name>_width and
// _height. None when thumbnails are switched off. Without Root only the core's
// own size and the settings are known.
func (s *Site) MediaSizes(settings Settings) ([]MediaSize, error) {
	if !settings.Bool("media_enable_thumbnail_sizes", true) {
		return nil, nil
	}
	sizes := []MediaSize{{"thumb", 150, 150}}
	if s.Root != "" {
		var err error
		if sizes, err = codeSizes(code{s.Root}, settings, sizes); err != nil {
			return nil, err
		}
	}
	return applySettings(sizes, settings), nil
}

// code is the owner's own code, which is only read: "platform" may be a link to
// another folder.
type code struct{ folder string }

func (c code) open(name string) (*os.File, error) {
	return os.Open(filepath.Join(c.folder, filepath.FromSlash(name)))
}

func codeSizes(root code, settings Settings, sizes []MediaSize) ([]MediaSize, error) {
	for _, config := range []string{"config/core/media/media.php", "platform/core/media/config/media.php"} {
		text, err := readPHP(root, config)
		if err != nil {
			return nil, err
		}
		if m := configSizes.FindStringSubmatch(text); m != nil {
			sizes = nil
			for _, size := range configSize.FindAllStringSubmatch(m[1], -1) {
				sizes = put(sizes, MediaSize{size[1], side(size[2]), side(size[3])})
			}
			break
		}
	}
	var folders []string
	if theme := settings.String("theme", ""); folderName.MatchString(theme) {
		folders = append(folders, "platform/themes/"+theme+"/functions")
	}
	for _, plugin := range settings.List("activated_plugins") {
		if folderName.MatchString(plugin) {
			folders = append(folders, "platform/plugins/"+plugin+"/src/Providers")
		}
	}
	for _, folder := range folders {
		found, err := addedSizes(root, folder)
		if err != nil {
			return nil, err
		}
		for _, size := range found {
			sizes = put(sizes, size)
		}
	}
	return sizes, nil
}

// addedSizes reads the addSize calls of the PHP files in one folder.
func addedSizes(root code, folder string) ([]MediaSize, error) {
	dir, err := root.open(folder)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("looking for thumbnail sizes: %w", err)
	}
	defer dir.Close()
	names, err := dir.Readdirnames(1000)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("looking for thumbnail sizes in %s: %w", folder, err)
	}
	slices.Sort(names)
	var sizes []MediaSize
	for _, name := range names {
		if path.Ext(name) != ".php" {
			continue
		}
		text, err := readPHP(root, folder+"/"+name)
		if err != nil {
			return nil, err
		}
		for _, m := range addSize.FindAllStringSubmatch(text, -1) {
			sizes = put(sizes, MediaSize{m[1], side(m[2]), side(m[3])})
		}
	}
	return sizes, nil
}

func readPHP(root code, name string) (string, error) {
	f, err := root.open(name)
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("reading thumbnail sizes: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxPHP))
	if err != nil {
		return "", fmt.Errorf("reading thumbnail sizes from %s: %w", name, err)
	}
	return withoutComments(string(text)), nil
}

// withoutComments drops PHP's three types of comments; strings are kept.
func withoutComments(code string) string {
	var out strings.Builder
	for i := 0; i < len(code); {
		rest := code[i:]
		n := 1
		switch {
		case rest[0] == '\'' || rest[0] == '"':
			n = quotedLength(rest)
			out.WriteString(rest[:n])
		case strings.HasPrefix(rest, "/*"):
			if n = strings.Index(rest[2:], "*/") + 4; n < 4 {
				n = len(rest)
			}
		case strings.HasPrefix(rest, "//"), rest[0] == '#' && !strings.HasPrefix(rest, "#["):
			if n = strings.IndexByte(rest, '\n'); n < 0 {
				n = len(rest)
			}
		default:
			out.WriteByte(rest[0])
		}
		i += n
	}
	return out.String()
}

func quotedLength(s string) int {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case s[0]:
			return i + 1
		}
	}
	return len(s)
}

func side(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil || n > 16383 {
		return 0
	}
	return n
}

// put adds a size or replaces the one of the same name.
func put(sizes []MediaSize, size MediaSize) []MediaSize {
	for i, old := range sizes {
		if old.Name == size.Name {
			sizes[i] = size
			return sizes
		}
	}
	return append(sizes, size)
}

// applySettings lets the administrator's numbers win. A size with both sides
// empty is no size.
func applySettings(sizes []MediaSize, settings Settings) []MediaSize {
	var out []MediaSize
	for _, size := range sizes {
		if v, there := settings["media_sizes_"+size.Name+"_width"]; there {
			size.Width = side(strings.TrimSpace(v))
		}
		if v, there := settings["media_sizes_"+size.Name+"_height"]; there {
			size.Height = side(strings.TrimSpace(v))
		}
		if size.Width > 0 || size.Height > 0 {
			out = append(out, size)
		}
	}
	return out
}
