package laravel

import (
	"slices"
	"strconv"
	"strings"
)

// node is one expression.
type node interface{}

type (
	literal struct{ value any } // nil, bool, int, float64, string
	unknown struct{}            // an expression that this package does not evaluate
	list    struct{ items []item }
	item    struct{ key, value node } // key nil: the next number
	call    struct {
		name string // in lower case, without namespace: env, str::slug
		args []node
	}
	binary struct {
		sign        string
		left, right node
	}
	unary struct {
		sign    string // !, -, or the type of a cast
		operand node
	}
	conditional struct{ condition, yes, no node } // yes nil: the condition itself
)

// maxDepth bounds how deep expressions may be nested.
const maxDepth = 200

type parser struct {
	tokens []token
	at     int
	depth  int
	uses   map[string]string // classes by their short names in lower case
}

// parse returns the expression that a config file returns.
func parse(source string) (node, error) {
	all, err := tokens(source)
	if err != nil {
		return nil, err
	}
	p := &parser{tokens: all, uses: map[string]string{}}
	for p.peek().kind != endOfFile {
		switch t := p.take(); {
		case t.kind != word:
		case strings.EqualFold(t.value, "return"):
			return p.element(false), nil
		case strings.EqualFold(t.value, "use"):
			p.use()
		}
	}
	return nil, errSyntax
}

// use notes the short name of an imported class: use App\Jobs\Import as Load;
func (p *parser) use() {
	class := p.take()
	short := class.value[strings.LastIndexByte(class.value, '\\')+1:]
	if strings.EqualFold(p.peek().value, "as") {
		p.take()
		short = p.take().value
	}
	if class.kind == word && p.peek().is(";") {
		p.uses[strings.ToLower(short)] = strings.TrimPrefix(class.value, `\`)
	}
}

// class is the full name of a class: a config file has no namespace.
func (p *parser) class(name string) string {
	if full, rooted := strings.CutPrefix(name, `\`); rooted {
		return full
	}
	first, rest, parts := strings.Cut(name, `\`)
	if full, imported := p.uses[strings.ToLower(first)]; imported {
		if first = full; parts {
			first += `\` + rest
		}
		return first
	}
	return name
}

func (p *parser) peek() token {
	if p.at < len(p.tokens) {
		return p.tokens[p.at]
	}
	return token{}
}

func (p *parser) take() token {
	t := p.peek()
	p.at++
	return t
}

// accept takes the next token if it is the sign.
func (p *parser) accept(value string) bool {
	if !p.peek().is(value) {
		return false
	}
	p.at++
	return true
}

// element reads one expression up to the sign that ends it; arrow says that =>
// is one. Where it cannot be read it is unknown, and the reading goes on behind.
func (p *parser) element(arrow bool) node {
	from := p.at
	n, ok := p.ternary()
	t := p.peek()
	if ok && (t.kind == endOfFile || arrow && t.is("=>") || t.kind == sign &&
		slices.Contains([]string{",", ")", "]", ";"}, t.value)) {
		return n
	}
	p.at = from
	p.skip(arrow)
	return unknown{}
}

// skip goes to the next sign that ends an element, over balanced brackets.
func (p *parser) skip(arrow bool) {
	open := 0
	for ; p.peek().kind != endOfFile; p.at++ {
		t := p.peek()
		if t.kind != sign {
			continue
		}
		switch t.value {
		case "(", "[", "{":
			open++
		case ")", "]", "}":
			if open == 0 {
				return
			}
			open--
		case ",", ";":
			if open == 0 {
				return
			}
		case "=>":
			if open == 0 && arrow {
				return
			}
		}
	}
}

func (p *parser) ternary() (node, bool) {
	if p.depth++; p.depth > maxDepth {
		return nil, false
	}
	defer func() { p.depth-- }()
	condition, ok := p.operation(0)
	if !ok {
		return nil, false
	}
	if p.accept("?:") {
		no, ok := p.ternary()
		return conditional{condition, nil, no}, ok
	}
	if !p.accept("?") {
		return condition, true
	}
	yes, ok := p.ternary()
	if !ok || !p.accept(":") {
		return nil, false
	}
	no, ok := p.ternary()
	return conditional{condition, yes, no}, ok
}

// Binary operators by how tightly they bind, loosest first.
var levels = [][]string{{"??"}, {"||"}, {"&&"}, {"==", "!=", "===", "!=="}, {"<", ">", "<=", ">="}, {"."}, {"+", "-"},
	{"*"}}

func (p *parser) operation(level int) (node, bool) {
	if level == len(levels) {
		return p.prefixed()
	}
	left, ok := p.operation(level + 1)
	for ok && p.peek().kind == sign && slices.Contains(levels[level], p.peek().value) {
		s := p.take().value
		var right node
		right, ok = p.operation(level + 1)
		left = binary{s, left, right}
	}
	return left, ok
}

var casts = map[string]string{"string": "string", "int": "int", "integer": "int", "bool": "bool", "boolean": "bool"}

func (p *parser) prefixed() (node, bool) {
	if p.depth++; p.depth > maxDepth {
		return nil, false
	}
	defer func() { p.depth-- }()
	for _, s := range []string{"!", "-"} {
		if p.accept(s) {
			operand, ok := p.prefixed()
			return unary{s, operand}, ok
		}
	}
	if p.peek().is("(") && p.at+2 < len(p.tokens) && p.tokens[p.at+2].is(")") {
		if cast, known := casts[strings.ToLower(p.tokens[p.at+1].value)]; known && p.tokens[p.at+1].kind == word {
			p.at += 3
			operand, ok := p.prefixed()
			return unary{cast, operand}, ok
		}
	}
	return p.primary()
}

func (p *parser) primary() (node, bool) {
	switch t := p.take(); {
	case t.kind == text:
		return literal{t.value}, true
	case t.kind == number:
		return numeric(t.value)
	case t.is("("):
		n := p.element(false)
		return n, p.accept(")")
	case t.is("["):
		return p.array("]")
	case t.kind == word:
		return p.named(t.value)
	}
	return nil, false
}

func numeric(s string) (node, bool) {
	if n, err := strconv.Atoi(s); err == nil && (s == "0" || s[0] != '0') {
		return literal{n}, true
	}
	f, err := strconv.ParseFloat(s, 64)
	return literal{f}, err == nil && strings.Contains(s, ".")
}

// named reads a constant, a call, a static call or array(…).
func (p *parser) named(name string) (node, bool) {
	class := p.class(name)
	name = strings.ToLower(name[strings.LastIndexByte(name, '\\')+1:])
	if name == "array" && p.accept("(") {
		return p.array(")")
	}
	if p.accept("::") {
		t := p.take()
		name += "::" + strings.ToLower(t.value)
		if t.kind != word {
			return nil, false
		}
		if strings.EqualFold(t.value, "class") && !slices.Contains([]string{"self", "static", "parent"}, class) {
			return literal{class}, true
		}
	}
	if p.accept("(") {
		args, ok := p.array(")")
		if !ok {
			return nil, false
		}
		c := call{name: name}
		for _, i := range args.(list).items {
			c.args = append(c.args, i.value)
		}
		return c, true
	}
	switch name {
	case "true", "false":
		return literal{name == "true"}, true
	case "null":
		return literal{nil}, true
	}
	return unknown{}, !slices.Contains([]string{"fn", "function", "new", "match", "static"}, name)
}

// array reads the items of an array, or the arguments of a call, behind its
// opening bracket.
func (p *parser) array(end string) (node, bool) {
	var all list
	for !p.accept(end) {
		if p.peek().kind == endOfFile {
			return nil, false
		}
		from := p.at
		i := item{value: p.element(true)}
		if p.accept("=>") {
			i.key, i.value = i.value, p.element(false)
		}
		all.items = append(all.items, i)
		if !p.accept(",") && !p.peek().is(end) || p.at == from {
			return nil, false
		}
	}
	return all, true
}
