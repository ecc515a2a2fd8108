package laravel

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// maxFile bounds how much is read of one file.
const maxFile = 4 << 20

// Config is the configuration of one application.
type Config struct {
	dir   string
	env   map[string]string
	files map[string]node
	// Major is Laravel's major version; 0 where vendor does not tell it.
	Major int
	// leftFirst says how the application's portable-ascii replaces (see ascii).
	leftFirst bool
}

// Where Laravel looks for one config file: what "config:cache" left stands
// for all, the application's own, then the framework's (since Laravel 11).
const (
	cachedConfig    = "bootstrap/cache/config.php"
	ownConfig       = "config/"
	frameworkConfig = "vendor/laravel/framework/config/"
	versionFile     = "vendor/laravel/framework/src/Illuminate/Foundation/Application.php"
	asciiFile       = "vendor/voku/portable-ascii/src/voku/helper/ASCII.php"
)

var version = regexp.MustCompile(`const VERSION = '(\d+)\.`)

// replacesLeftFirst is in portable-ascii since 2.1. Its version is in no file
// that every installation has.
const replacesLeftFirst = "function to_ascii_replace("

// Open reads the config files that are named, without ".php", in an
// application's folder. Files that are missing or cannot be read as PHP leave
// their values unknown. dir "" has no files.
func Open(dir string, env map[string]string, names ...string) (*Config, error) {
	c := &Config{dir: dir, env: env, files: map[string]node{}}
	if dir == "" {
		return c, nil
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return c, errors.Join(fmt.Errorf("%s is not the CMS's folder", dir), err)
	}
	root := folder(dir)
	if source, err := read(root, versionFile); err == nil {
		if m := version.FindStringSubmatch(source); m != nil {
			c.Major, _ = strconv.Atoi(m[1]) // it has digits only; too many of them are no version
		}
	}
	if source, err := read(root, asciiFile); err == nil {
		c.leftFirst = strings.Contains(source, replacesLeftFirst)
	}
	cached, err := tree(root, cachedConfig)
	if err != nil {
		return c, err
	}
	for _, name := range names {
		if err := c.open(root, cached, name); err != nil {
			return c, err
		}
	}
	return c, nil
}

// folder is an application's. Its "config" or "vendor" may be a link to a folder
// elsewhere; it is the owner's code, and only read.
type folder string

func (c *Config) open(root folder, cached node, name string) error {
	if cached != nil {
		if n, err := c.item(cached, name); err == nil {
			if _, is := n.(list); is {
				c.files[name] = n
				return nil
			}
		}
	}
	for _, place := range []string{ownConfig, frameworkConfig} {
		n, err := tree(root, place+name+".php")
		if err != nil {
			return err
		}
		if n != nil {
			c.files[name] = n
			return nil
		}
	}
	return nil
}

// tree reads one file; nil where there is none or it is no config file.
func tree(root folder, name string) (node, error) {
	source, err := read(root, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the CMS's %s: %w", name, err)
	}
	n, err := parse(source)
	if err != nil {
		return nil, nil //nolint:nilerr // unreadable PHP leaves its values unknown
	}
	return n, nil
}

func read(root folder, name string) (string, error) {
	f, err := os.Open(filepath.Join(string(root), filepath.FromSlash(name)))
	if err != nil {
		return "", err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = fmt.Errorf("it is larger than %d bytes", maxFile)
	}
	return string(data), err
}

// Has says whether a config file was found and read.
func (c *Config) Has(file string) bool {
	_, known := c.files[file]
	return known
}

// Value is one value of a config file: nil, bool, int, float64 or string.
// ErrUnknown where the file is missing or makes the value in another way.
func (c *Config) Value(file string, keys ...string) (any, error) {
	n, known := c.files[file]
	if !known {
		return nil, ErrUnknown
	}
	for _, key := range keys {
		var err error
		if n, err = c.item(n, key); err != nil {
			return nil, err
		}
	}
	return c.evaluate(n)
}

// Keys are the keys of an array in a config file, in their order; nil where it is none,
// or is made in a way that this package does not evaluate.
func (c *Config) Keys(file string, keys ...string) (names []string) {
	n, known := c.files[file]
	if !known {
		return nil
	}
	for _, key := range keys {
		var err error
		if n, err = c.item(n, key); err != nil {
			return nil
		}
	}
	all, is := n.(list)
	if !is {
		return nil
	}
	index := 0
	for _, i := range all.items {
		name := strconv.Itoa(index)
		if i.key == nil {
			index++
		} else if value, err := c.evaluate(i.key); err == nil {
			name = toString(value)
		} else {
			continue
		}
		names = append(names, name)
	}
	return names
}

// text is a value as a string, or fallback where it is unknown or null.
func (c *Config) text(fallback, file string, keys ...string) string {
	value, err := c.Value(file, keys...)
	if err != nil || value == nil {
		return fallback
	}
	return toString(value)
}
