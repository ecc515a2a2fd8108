package config

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/go-viper/mapstructure/v2"

	"github.com/cmsjobs/cmsjobs/internal/timespan"
)

// Size is a number of bytes, written as 512MiB, 64KB or 1048576.
type Size int64

func (s Size) String() string {
	for _, u := range []struct {
		name  string
		bytes int64
	}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		if s != 0 && int64(s)%u.bytes == 0 {
			return fmt.Sprintf("%d%s", int64(s)/u.bytes, u.name)
		}
	}
	return strconv.FormatInt(int64(s), 10)
}

// MarshalText writes a size as the file has it.
func (s Size) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// formatDuration writes what timespan.Parse reads, in the shortest usual form.
func formatDuration(d time.Duration) string {
	day := 24 * time.Hour
	switch {
	case d != 0 && d%day == 0:
		return strconv.Itoa(int(d/day)) + "d"
	case d != 0 && d%time.Hour == 0:
		return strconv.Itoa(int(d/time.Hour)) + "h"
	case d != 0 && d%time.Minute == 0:
		return strconv.Itoa(int(d/time.Minute)) + "m"
	}
	return d.String()
}

var (
	durationType = reflect.TypeFor[time.Duration]()
	sizeType     = reflect.TypeFor[Size]()
	rangeType    = reflect.TypeFor[Range]()
)

// fromText reads the types that mapstructure does not know.
func fromText(_, to reflect.Type, data any) (any, error) {
	text := strings.TrimSpace(fmt.Sprint(data))
	switch {
	case to == durationType:
		return timespan.Parse(text)
	case to == sizeType:
		n, err := humanize.ParseBytes(text)
		if err != nil || n > 1<<60 {
			return nil, fmt.Errorf("%q is not a number of bytes: write 512MiB, 64KB or 1048576", text)
		}
		return Size(n), nil
	case to == rangeType:
		return ParseRange(text)
	case to.Kind() == reflect.Slice && isPlain(to.Elem().Kind()):
		return listOf(data), nil
	case to.Kind() == reflect.Bool:
		return parseBool(text)
	case isInteger(to.Kind()):
		if _, err := strconv.Atoi(text); err != nil {
			return nil, fmt.Errorf("%q is not a whole number", text)
		}
	case to.Kind() == reflect.String:
		if kind := reflect.ValueOf(data).Kind(); kind == reflect.Map || kind == reflect.Slice {
			return nil, errors.New("one text is wanted here, not a list or a section")
		}
	}
	return data, nil
}

// isPlain: lists of these may be written as a,b,c.
func isPlain(k reflect.Kind) bool { return k == reflect.String || isInteger(k) }

func isInteger(k reflect.Kind) bool { return k >= reflect.Int && k <= reflect.Uint64 }

func parseBool(text string) (bool, error) {
	switch strings.ToLower(text) {
	case "true", "1", "on", "yes":
		return true, nil
	case "false", "0", "off", "no", "":
		return false, nil
	}
	return false, fmt.Errorf("%q is neither true nor false", text)
}

// listOf reads a list as YAML or as the environment writes it: a,b,c. It may
// stand in brackets, as config show prints it.
func listOf(data any) any {
	text, ok := data.(string)
	if !ok {
		return data
	}
	if inner, opens := strings.CutPrefix(strings.TrimSpace(text), "["); opens {
		if inner, closes := strings.CutSuffix(inner, "]"); closes {
			text = inner
		}
	}
	list := []string{}
	for _, item := range strings.Split(text, ",") {
		if item = strings.TrimSpace(item); item != "" {
			list = append(list, item)
		}
	}
	return list
}

// decode puts one raw value into the field that target points to.
func decode(raw, target any) error {
	d, err := mapstructure.NewDecoder(&mapstructure.DecoderConfig{
		DecodeHook:       fromText,
		Result:           target,
		TagName:          "koanf",
		WeaklyTypedInput: true,
		ErrorUnused:      true,
		ZeroFields:       true,
	})
	if err != nil {
		return err
	}
	return d.Decode(raw)
}
