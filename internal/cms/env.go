package cms

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Env is a CMS's .env file, read as PHP's dotenv reads it.
type Env map[string]string

// ReadEnv reads the .env in a CMS's folder. No file is an empty Env.
func ReadEnv(root string) (Env, error) {
	f, err := os.Open(filepath.Join(root, ".env"))
	if errors.Is(err, os.ErrNotExist) {
		return Env{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the CMS's .env: %w", err)
	}
	defer f.Close()
	return ParseEnv(f)
}

var (
	envLine = regexp.MustCompile(`^\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_.]*)\s*=\s*(.*)$`)
	envVar  = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_.]*)\}`)
)

// maxEnvSize bounds what is read of a .env file.
const maxEnvSize = 1 << 20

// ParseEnv reads lines of KEY=value. 'single' quotes keep everything, "double"
// quotes know \n, \", \\ and ${OTHER}, bare values end at " #". The words
// null, (null), empty and (empty) mean the empty string, as Laravel's env() has it.
func ParseEnv(r io.Reader) (Env, error) {
	env := Env{}
	lines := bufio.NewScanner(io.LimitReader(r, maxEnvSize))
	lines.Buffer(nil, maxEnvSize)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimPrefix(lines.Text(), "\ufeff")
		if trimmed := strings.TrimSpace(line); trimmed == "" || trimmed[0] == '#' {
			continue
		}
		m := envLine.FindStringSubmatch(line)
		if m == nil {
			return nil, fmt.Errorf(".env line %d is not KEY=value", n)
		}
		value, err := env.value(m[2])
		if err != nil {
			return nil, fmt.Errorf(".env line %d (%s): %w", n, m[1], err)
		}
		env[m[1]] = value
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("reading .env: %w", err)
	}
	return env, nil
}

func (e Env) value(raw string) (string, error) {
	raw = strings.TrimSpace(raw)
	switch {
	case raw == "":
		return "", nil
	case raw[0] == '\'':
		end := strings.IndexByte(raw[1:], '\'')
		if end < 0 {
			return "", errors.New("a ' is not closed")
		}
		return raw[1 : 1+end], nil
	case raw[0] == '"':
		return e.quoted(raw[1:])
	}
	if i := strings.Index(raw, " #"); i >= 0 {
		raw = strings.TrimSpace(raw[:i])
	}
	switch strings.ToLower(raw) {
	case "null", "(null)", "empty", "(empty)":
		return "", nil
	}
	return e.expand(raw), nil
}

// quoted reads a double-quoted value whose opening quote is gone already.
func (e Env) quoted(raw string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case c == '"':
			return e.expand(b.String()), nil
		case c == '\\' && i+1 < len(raw):
			i++
			switch raw[i] {
			case 'n':
				b.WriteByte('\n')
			case 't':
				b.WriteByte('\t')
			case 'r':
				b.WriteByte('\r')
			default:
				b.WriteByte(raw[i])
			}
		default:
			b.WriteByte(c)
		}
	}
	return "", errors.New(`a " is not closed`)
}

func (e Env) expand(value string) string {
	return envVar.ReplaceAllStringFunc(value, func(ref string) string {
		if v, known := e[ref[2:len(ref)-1]]; known {
			return v
		}
		return ref
	})
}

// String is the value of key, or fallback where it is missing or empty.
func (e Env) String(key, fallback string) string {
	if v := e[key]; v != "" {
		return v
	}
	return fallback
}

func (e Env) siteURL() string {
	url := strings.TrimRight(e.String("FORCE_ROOT_URL", e.String("APP_URL", "")), "/")
	scheme := strings.TrimSuffix(e.String("FORCE_SCHEMA", ""), "://")
	if _, rest, ok := strings.Cut(url, "://"); ok && scheme != "" {
		return scheme + "://" + rest
	}
	return url
}
