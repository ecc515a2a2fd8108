package laravel

import (
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"
)

// ErrUnknown says that a value is made in a way that this package does not
// evaluate, or that there is none.
var ErrUnknown = errors.New("the value cannot be read without running PHP")

// item finds one key of an array.
func (c *Config) item(n node, key string) (node, error) {
	all, is := n.(list)
	if !is {
		return nil, ErrUnknown
	}
	var found node = literal{nil}
	index := 0
	for _, i := range all.items {
		name := strconv.Itoa(index)
		if i.key == nil {
			index++
		} else {
			value, err := c.evaluate(i.key)
			if err != nil {
				continue // a key that is made by a class: not one of Laravel's own
			}
			name = toString(value)
		}
		if name == key {
			found = i.value // the last one counts, as in PHP
		}
	}
	return found, nil
}

// evaluate gives an expression's value: nil, bool, int, float64 or string.
func (c *Config) evaluate(n node) (any, error) {
	switch n := n.(type) {
	case literal:
		return n.value, nil
	case call:
		return c.call(n)
	case unary:
		return c.unary(n)
	case binary:
		return c.binary(n)
	case conditional:
		condition, err := c.evaluate(n.condition)
		switch {
		case err != nil:
			return nil, err
		case toBool(condition) && n.yes == nil:
			return condition, nil
		case toBool(condition):
			return c.evaluate(n.yes)
		}
		return c.evaluate(n.no)
	}
	return nil, ErrUnknown
}

func (c *Config) unary(n unary) (any, error) {
	value, err := c.evaluate(n.operand)
	if err != nil {
		return nil, err
	}
	switch n.sign {
	case "string":
		return toString(value), nil
	case "bool":
		return toBool(value), nil
	case "!":
		return !toBool(value), nil
	case "int", "-":
		whole, err := strconv.Atoi(strings.TrimSpace(toString(value)))
		if err != nil {
			return nil, ErrUnknown
		}
		if n.sign == "-" {
			whole = -whole
		}
		return whole, nil
	}
	return nil, ErrUnknown
}

func (c *Config) binary(n binary) (any, error) {
	left, err := c.evaluate(n.left)
	if err != nil {
		return nil, err
	}
	switch {
	case n.sign == "??" && left != nil, n.sign == "||" && toBool(left), n.sign == "&&" && !toBool(left):
		if n.sign == "??" {
			return left, nil
		}
		return toBool(left), nil
	}
	right, err := c.evaluate(n.right)
	if err != nil {
		return nil, err
	}
	switch n.sign {
	case "??":
		return right, nil
	case "||", "&&":
		return toBool(right), nil
	case ".":
		return toString(left) + toString(right), nil
	case "===":
		return left == right, nil
	case "!==":
		return left != right, nil
	case "==", "!=":
		if fmt.Sprintf("%T", left) != fmt.Sprintf("%T", right) { // PHP's loose rules are not worth having
			return nil, ErrUnknown
		}
		return (left == right) == (n.sign == "=="), nil
	}
	return nil, ErrUnknown
}

// call does the functions that config files make values with.
func (c *Config) call(n call) (any, error) {
	if n.name == "env" || n.name == "env::get" {
		return c.envCall(n)
	}
	args := make([]string, len(n.args))
	for i, arg := range n.args {
		value, err := c.evaluate(arg)
		if err != nil {
			return nil, err
		}
		args[i] = toString(value)
	}
	argument := func(i int, fallback string) string {
		if i < len(args) {
			return args[i]
		}
		return fallback
	}
	first := argument(0, "")
	switch n.name {
	case "str::slug", "str_slug":
		if len(args) > 2 {
			return nil, ErrUnknown
		}
		return slug(first, argument(1, "-"), c.leftFirst), nil
	case "str::lower", "strtolower", "mb_strtolower":
		return strings.ToLower(first), nil
	case "str::upper", "strtoupper", "mb_strtoupper":
		return strings.ToUpper(first), nil
	case "trim", "rtrim", "ltrim":
		return trimmed(n.name, first, argument(1, " \t\n\r\x00\x0b")), nil
	case "storage_path":
		return path.Join(c.dir, "storage", first), nil
	case "base_path":
		return path.Join(c.dir, first), nil
	case "database_path":
		return path.Join(c.dir, "database", first), nil
	}
	return nil, ErrUnknown
}

func trimmed(name, s, cutset string) string {
	switch name {
	case "rtrim":
		return strings.TrimRight(s, cutset)
	case "ltrim":
		return strings.TrimLeft(s, cutset)
	}
	return strings.Trim(s, cutset)
}

// envCall is Laravel's env(): some words of the .env are values.
func (c *Config) envCall(n call) (any, error) {
	if len(n.args) == 0 {
		return nil, ErrUnknown
	}
	name, err := c.evaluate(n.args[0])
	if err != nil {
		return nil, err
	}
	value, set := c.env[toString(name)]
	switch {
	case !set && len(n.args) > 1:
		return c.evaluate(n.args[1])
	case !set:
		return nil, nil
	}
	switch strings.ToLower(value) {
	case "true", "(true)":
		return true, nil
	case "false", "(false)":
		return false, nil
	}
	return value, nil
}

func toString(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case bool:
		if v {
			return "1"
		}
		return ""
	}
	return fmt.Sprint(value)
}

func toBool(value any) bool {
	switch v := value.(type) {
	case nil:
		return false
	case bool:
		return v
	case int:
		return v != 0
	case float64:
		return v != 0
	case string:
		return v != "" && v != "0"
	}
	return true
}
