package access

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/bcrypt"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// ErrRefused says that the credentials are not good, and nothing else.
var ErrRefused = errors.New("these credentials are not valid")

// ErrThrottled says that there were too many wrong attempts. RetryAfter of a
// ThrottledError says how long to wait.
var ErrThrottled = errors.New("too many wrong sign-ins")

// ThrottledError is ErrThrottled with the time to wait.
type ThrottledError struct{ RetryAfter time.Duration }

func (e ThrottledError) Error() string {
	return fmt.Sprintf("%v: try again in %s", ErrThrottled, e.RetryAfter.Round(time.Second))
}

// Is makes errors.Is(err, ErrThrottled) true.
func (e ThrottledError) Is(target error) bool { return target == ErrThrottled }

// User is an account of the configuration.
type User struct {
	Name         string
	PasswordHash string // bcrypt
	Role         Role
}

// Account is one of the CMS's administrators, as its users table has it.
type Account struct {
	ID           string
	Name         string // what people know it by: user name, else e-mail
	PasswordHash string // bcrypt, $2y$ as PHP writes it
	SuperUser    bool
	// Permissions are the flags of the CMS that the account or its role has.
	Permissions []string
	// SessionsInvalidatedAt ends sessions that began earlier; zero when never.
	SessionsInvalidatedAt time.Time
}

// Accounts finds the CMS's own administrators by user name or e-mail. It wraps
// jobs.ErrNotFound.
type Accounts interface {
	AccountByLogin(ctx context.Context, login string) (Account, error)
}

// Authenticator lets people in by name and password.
type Authenticator struct {
	// Users of the configuration come first.
	Users []User
	// CMS finds the CMS's administrators; nil leaves them out.
	CMS Accounts
	// SuperUserRole is what the CMS's super users are; "" is Administrator.
	SuperUserRole Role
	// PermissionRoles gives CMS accounts that are no super users a role by a
	// permission that they have ("cmsjobs.operate" → operator). The strongest wins.
	PermissionRoles map[string]Role
	Store           *Store

	once        sync.Once
	key         [32]byte
	mu          sync.Mutex
	signInCache map[string]cachedSignIn
	cost        atomic.Int32 // of the last real account's hash
}

type cachedSignIn struct {
	principal Principal
	until     time.Time
}

// Login is one try to get in.
type Login struct{ Name, Password, Address string }

// Person is who got in.
type Person struct {
	Name   string
	Source string // "config" or "cms"
	Role   Role
}

// nobody returns a hash that nothing matches, of the cost that the last real
// one had: an unknown account takes as much time as a known one.
func (g *Authenticator) nobody() []byte {
	cost := max(int(g.cost.Load()), bcrypt.DefaultCost)
	return fmt.Appendf(nil, "$2a$%02d$......................0000000000000000000000000000000", cost)
}

// SignIn checks a name and a password. Every try is counted before the
// password is looked at, so that tries at the same time count too; one that
// ends in a fault of ours is taken back.
func (g *Authenticator) SignIn(ctx context.Context, l Login) (Person, error) {
	try := attempt{account: strings.ToLower(strings.TrimSpace(l.Name)), network: Network(l.Address)}
	slow, err := g.Store.countLogin(ctx, &try)
	if err != nil {
		if !errors.Is(err, ErrThrottled) {
			g.Store.uncountLogin(ctx, try)
		}
		return Person{}, err
	}
	if err := wait(ctx, slow); err != nil {
		return Person{}, err
	}
	person, hash, err := g.find(ctx, l.Name)
	if err != nil {
		g.Store.uncountLogin(ctx, try)
		return Person{}, err
	}
	if len(l.Password) > 72 { // bcrypt knows 72 bytes, PHP cuts the rest off
		l.Password = l.Password[:72]
	}
	if cost, err := bcrypt.Cost(hash); err == nil {
		g.cost.Store(int32(cost))
	}
	match := bcrypt.CompareHashAndPassword(hash, []byte(l.Password))
	if match != nil || person.Role.Scopes() == nil {
		return Person{}, ErrRefused
	}
	return person, g.Store.forgiveLogin(ctx, try)
}

// wait is how an account that strangers try to open is slowed down.
func wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

func (g *Authenticator) find(ctx context.Context, name string) (Person, []byte, error) {
	name = strings.TrimSpace(name)
	for _, u := range g.Users {
		if u.Name == name {
			return Person{Name: u.Name, Source: "config", Role: u.Role}, []byte(u.PasswordHash), nil
		}
	}
	if g.CMS == nil || name == "" {
		return Person{}, g.nobody(), nil
	}
	a, err := g.CMS.AccountByLogin(ctx, name)
	if errors.Is(err, jobs.ErrNotFound) {
		return Person{}, g.nobody(), nil
	}
	if err != nil {
		return Person{}, nil, fmt.Errorf("looking up the CMS's account: %w", err)
	}
	return Person{Name: a.Name, Source: "cms", Role: g.roleOf(a)}, []byte(a.PasswordHash), nil
}

// roleOf is what an account of the CMS may do; "" when it may not come in.
func (g *Authenticator) roleOf(a Account) Role {
	if a.SuperUser {
		if g.SuperUserRole == "" {
			return Administrator
		}
		return g.SuperUserRole
	}
	best := -1
	for _, permission := range a.Permissions {
		if role, ok := g.PermissionRoles[permission]; ok {
			best = max(best, slices.Index(Roles(), role))
		}
	}
	if best < 0 {
		return ""
	}
	return Roles()[best]
}

// current returns what a person who signed in earlier may do now: an account
// that was deleted, demoted or signed out everywhere loses its sessions.
func (g *Authenticator) current(ctx context.Context, name, source string, since time.Time) (Role, error) {
	if source == "config" {
		for _, u := range g.Users {
			if u.Name == name {
				return u.Role, nil
			}
		}
		return "", ErrRefused
	}
	if g.CMS == nil {
		return "", ErrRefused
	}
	a, err := g.CMS.AccountByLogin(ctx, name)
	if errors.Is(err, jobs.ErrNotFound) {
		return "", ErrRefused
	}
	if err != nil {
		return "", fmt.Errorf("looking up the CMS's account: %w", err)
	}
	if role := g.roleOf(a); role != "" && !since.Before(a.SessionsInvalidatedAt) {
		return role, nil
	}
	return "", ErrRefused
}

// verificationLife is how long a name and password that were right are remembered for
// Basic, so that a script's every request does not cost a bcrypt.
const verificationLife = time.Minute

// Basic is SignIn for scripts that send name and password with each request.
func (g *Authenticator) Basic(ctx context.Context, l Login) (Principal, error) {
	g.once.Do(func() { rand.Read(g.key[:]); g.signInCache = map[string]cachedSignIn{} })
	mac := hmac.New(sha256.New, g.key[:])
	fmt.Fprintf(mac, "%d %s%s", len(l.Name), l.Name, l.Password)
	key, now := string(mac.Sum(nil)), g.Store.now()

	g.mu.Lock()
	p, known := g.signInCache[key]
	g.mu.Unlock()
	if known && now.Before(p.until) {
		return p.principal, nil
	}
	person, err := g.SignIn(ctx, l)
	if err != nil {
		return Principal{}, err
	}
	principal := Principal{Name: person.Name, Via: "basic", Scopes: person.Role.Scopes()}
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.signInCache) > 1000 {
		clear(g.signInCache)
	}
	g.signInCache[key] = cachedSignIn{principal, now.Add(verificationLife)}
	return principal, nil
}
