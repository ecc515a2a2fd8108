package access_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/web/access"
)

// clock is a time that the test moves.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func newClock() *clock { return &clock{at: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)} }

func (c *clock) now() time.Time { c.mu.Lock(); defer c.mu.Unlock(); return c.at }

func (c *clock) add(d time.Duration) { c.mu.Lock(); defer c.mu.Unlock(); c.at = c.at.Add(d) }

// everywhere runs a test on each database.
func everywhere(t *testing.T, test func(t *testing.T, s *access.Store, c *clock)) {
	for _, engine := range jobstest.Engines() {
		t.Run(string(engine), func(t *testing.T) {
			c := newClock()
			test(t, access.NewStore(jobstest.Migrated(t, engine).DB, c.now), c)
		})
	}
}

func TestTokensOpenUntilTheyExpireOrAreRevoked(t *testing.T) {
	everywhere(t, func(t *testing.T, s *access.Store, c *clock) {
		ctx := t.Context()
		made, secret, err := s.CreateToken(ctx, access.Token{Name: "cms", Scopes: access.Scopes{access.Enqueue},
			Types: []string{"cache.clear"}, ExpiresAt: c.now().Add(time.Hour)})
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(secret, access.TokenPrefix) {
			t.Errorf("the secret %q has no prefix for scanners", secret)
		}
		p, err := s.ByToken(ctx, secret)
		if err != nil || p.Name != "cms" || !p.Scopes.Has(access.Enqueue) || p.Scopes.Has(access.Read) ||
			(access.Effects{}).MayEnqueue(p, "mail.send", nil) == nil ||
			(access.Effects{}).MayEnqueue(p, "cache.clear", nil) != nil {
			t.Errorf("%+v, %v", p, err)
		}
		for _, wrong := range []string{"", "x", access.TokenPrefix, secret[:len(secret)-1], secret + "0", made.ID,
			access.Hash(secret)} {
			if _, err := s.ByToken(ctx, wrong); !errors.Is(err, access.ErrRefused) {
				t.Errorf("%q opens: %v", wrong, err)
			}
		}
		c.add(time.Hour)
		if _, err := s.ByToken(ctx, secret); !errors.Is(err, access.ErrRefused) {
			t.Errorf("an expired token opens: %v", err)
		}
		lasting, secret, err := s.CreateToken(ctx, access.Token{Name: "ops", Scopes: access.Scopes{access.Admin}})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.RevokeToken(ctx, lasting.ID); err != nil {
			t.Fatal(err)
		}
		if _, err := s.ByToken(ctx, secret); !errors.Is(err, access.ErrRefused) {
			t.Errorf("a revoked token opens: %v", err)
		}
		if err := s.RevokeToken(ctx, "none"); !errors.Is(err, jobs.ErrNotFound) {
			t.Errorf("revoking nothing: %v", err)
		}
		list, err := s.Tokens(ctx)
		if err != nil || len(list) != 2 || list[0].Name != "ops" || list[0].RevokedAt.IsZero() ||
			list[1].UsedAt.IsZero() {
			t.Errorf("%+v, %v", list, err)
		}
	})
}

func TestTheDatabaseHoldsNoSecret(t *testing.T) {
	db := jobstest.Migrated(t, jobstest.SQLite)
	c := newClock()
	s := access.NewStore(db.DB, c.now)
	_, token, err := s.CreateToken(t.Context(), access.Token{Name: "x", Scopes: access.Scopes{access.Read}})
	if err != nil {
		t.Fatal(err)
	}
	g := gate(t, s, nil)
	session, err := g.Begin(t.Context(), access.Person{Name: "ann", Source: "config", Role: access.Viewer}, "::1",
		"test")
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range []string{"cmsjobs_tokens", "cmsjobs_sessions"} {
		rows, err := db.Queryx("SELECT * FROM " + table)
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			cells, err := rows.SliceScan()
			if err != nil {
				t.Fatal(err)
			}
			for _, cell := range cells {
				if text, _ := cell.(string); strings.Contains(text, session) || strings.Contains(text, token) {
					t.Errorf("%s holds the secret itself", table)
				}
			}
		}
	}
}

func hashOf(t testing.TB, password string) string {
	t.Helper()
	h, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	return string(h)
}

func gate(t testing.TB, s *access.Store, cms access.Accounts) *access.Authenticator {
	return &access.Authenticator{Store: s, CMS: cms, Users: []access.User{ // cheap hashes: an unknown name costs more
		{Name: "ann", PasswordHash: hashOf(t, "right"), Role: access.Operator},
		{Name: "bob", PasswordHash: hashOf(t, "unknown"), Role: access.Viewer}},
		PermissionRoles: map[string]access.Role{"cmsjobs.view": access.Viewer, "cmsjobs.operate": access.Operator}}
}

// users is the CMS's users table with these rows.
type users map[string]access.Account

func (r users) AccountByLogin(_ context.Context, login string) (access.Account, error) {
	if a, ok := r[login]; ok {
		return a, nil
	}
	return access.Account{}, jobs.ErrNotFound
}

func TestPeopleSignInAsWhatTheyAre(t *testing.T) {
	s := access.NewStore(jobstest.Migrated(t, jobstest.SQLite).DB, newClock().now)
	php := "$2y$" + hashOf(t, "geheim")[4:] // as PHP spells it
	g := gate(t, s, users{
		"root": {Name: "root", PasswordHash: php, SuperUser: true},
		"editor": {Name: "editor", PasswordHash: php, Permissions: []string{"posts.edit", "cmsjobs.view",
			"cmsjobs.operate"}},
		"writer": {Name: "writer", PasswordHash: php, Permissions: []string{"posts.edit"}},
		"broken": {Name: "broken", PasswordHash: "", SuperUser: true},
	})
	for _, c := range []struct {
		name, password string
		role           access.Role
	}{
		{"ann", "right", access.Operator}, {"ann", "wrong", ""}, {"root", "geheim", access.Administrator},
		{"root", "", ""},
		{"editor", "geheim", access.Operator}, {"writer", "geheim", ""}, {"broken", "", ""}, {"nobody", "geheim", ""},
		{"", "", ""},
	} {
		p, err := g.SignIn(t.Context(), access.Login{Name: c.name, Password: c.password, Address: "203.0.113.9"})
		if p.Role != c.role && err == nil || (c.role == "") != errors.Is(err, access.ErrRefused) {
			t.Errorf("%s/%s: %+v, %v; want role %q", c.name, c.password, p, err, c.role)
		}
	}
}

func TestSessionsEnd(t *testing.T) {
	everywhere(t, func(t *testing.T, s *access.Store, c *clock) {
		ctx, cms := t.Context(), users{"root": {Name: "root", SuperUser: true}}
		g := gate(t, s, cms)
		begin := func(p access.Person) string {
			session, err := g.Begin(ctx, p, "192.0.2.1", "browser")
			if err != nil {
				t.Fatal(err)
			}
			return session
		}
		opens := func(session string) bool {
			_, err := g.BySession(ctx, session)
			if err != nil && !errors.Is(err, access.ErrRefused) {
				t.Fatal(err)
			}
			return err == nil
		}
		ann, root := access.Person{Name: "ann", Source: "config", Role: access.Operator}, access.Person{
			Name: "root", Source: "cms", Role: access.Administrator}

		idle := begin(ann)
		c.add(access.SessionIdle - time.Second)
		if !opens(idle) {
			t.Error("a session ended before it was idle")
		}
		c.add(access.SessionIdle - time.Second)
		if !opens(idle) {
			t.Error("using a session did not keep it")
		}
		c.add(access.SessionIdle + time.Second)
		if opens(idle) {
			t.Error("an idle session lives")
		}
		long := begin(ann)
		for range 30 {
			c.add(25 * time.Minute)
			opens(long)
		}
		if opens(long) {
			t.Error("a session outlives its whole life by being used")
		}
		out := begin(ann)
		if err := g.End(ctx, out); err != nil || opens(out) {
			t.Errorf("a session that was ended opens (%v)", err)
		}
		demoted := begin(root)
		cms["root"] = access.Account{Name: "root"}
		if opens(demoted) {
			t.Error("a demoted account's session opens")
		}
		cms["root"] = access.Account{Name: "root", SuperUser: true, SessionsInvalidatedAt: c.now().Add(time.Second)}
		if opens(demoted) {
			t.Error("a session outlives the CMS's 'sign out everywhere'")
		}
	})
}

func TestTooManyWrongSignInsWait(t *testing.T) {
	everywhere(t, func(t *testing.T, s *access.Store, c *clock) {
		g := gate(t, s, nil)
		try := func(name, password, address string) error {
			_, err := g.SignIn(t.Context(), access.Login{Name: name, Password: password, Address: address})
			return err
		}
		for range 10 {
			if err := try("ann", "wrong", "192.0.2.1"); !errors.Is(err, access.ErrRefused) {
				t.Fatal(err)
			}
		}
		var throttled access.ThrottledError
		if err := try("ann", "right", "192.0.2.1"); !errors.As(err, &throttled) || throttled.RetryAfter <= 0 {
			t.Errorf("the address is not throttled: %v", err)
		}
		if err := try("bob", "wrong", "192.0.2.1"); !errors.Is(err, access.ErrThrottled) {
			t.Errorf("the address is not throttled for another account: %v", err)
		}
		if err := try("ann", "right", "192.0.2.2"); err != nil {
			t.Errorf("a stranger locks the account's owner out: %v", err)
		}
		locks, err := s.Locks(t.Context())
		if err != nil || len(locks) != 1 || locks[0].Address != "192.0.2.1" || locks[0].Account ||
			!locks[0].Until.After(c.now()) {
			t.Errorf("locks are %+v, %v", locks, err)
		}
		c.add(15*time.Minute + time.Second)
		if err := try("ann", "right", "192.0.2.1"); err != nil {
			t.Errorf("after the window: %v", err)
		}
	})
}

// Strangers behind the same address do not lock out who signed in there lately,
// and who did cannot try for ever.
func TestAKnownAddressHasItsOwnCount(t *testing.T) {
	everywhere(t, func(t *testing.T, s *access.Store, c *clock) {
		g := gate(t, s, nil)
		try := func(name, password, address string) error {
			_, err := g.SignIn(t.Context(), access.Login{Name: name, Password: password, Address: address})
			return err
		}
		if err := try("ann", "right", "192.0.2.1"); err != nil {
			t.Fatal(err)
		}
		for range 30 {
			_ = try("bob", "wrong", "192.0.2.1")
		}
		if err := try("bob", "wrong", "192.0.2.1"); !errors.Is(err, access.ErrThrottled) {
			t.Errorf("the stranger goes on: %v", err)
		}
		if err := try("ANN ", "wrong", "192.0.2.1"); !errors.Is(err, access.ErrRefused) {
			t.Errorf("the known account is locked out: %v", err)
		}
		if err := try("ann", "right", "192.0.2.1"); err != nil {
			t.Errorf("the known account is locked out: %v", err)
		}
		for range 30 {
			_ = try("ann", "wrong", "192.0.2.1")
		}
		if err := try("ann", "right", "192.0.2.1"); !errors.Is(err, access.ErrThrottled) {
			t.Errorf("a known address tries for ever: %v", err)
		}
		locks, err := s.Locks(t.Context())
		if err != nil || len(locks) != 2 {
			t.Fatalf("locks are %+v, %v", locks, err)
		}
		if err := s.Unlock(t.Context(), "192.0.2.1"); err != nil {
			t.Error(err)
		}
		if err := try("ann", "right", "192.0.2.1"); err != nil {
			t.Errorf("after unlocking: %v", err)
		}
		if err := s.Unlock(t.Context(), "192.0.2.9"); !errors.Is(err, jobs.ErrNotFound) {
			t.Errorf("unlocking what is not locked: %v", err)
		}
		c.add(31 * 24 * time.Hour)
		if err := s.Sweep(t.Context(), access.Retention{}); err != nil {
			t.Error(err)
		}
		for range 11 {
			_ = try("bob", "wrong", "192.0.2.1")
		}
		if err := try("ann", "right", "192.0.2.1"); !errors.Is(err, access.ErrThrottled) {
			t.Errorf("an address is known for ever: %v", err)
		}
	})
}

// Tries against one account from many addresses are slowed down, not refused.
func TestAnAccountUnderAttackIsSlowedDown(t *testing.T) {
	everywhere(t, func(t *testing.T, s *access.Store, _ *clock) {
		g := gate(t, s, nil)
		for i := range 25 {
			if _, err := g.SignIn(t.Context(), access.Login{Name: "ann", Password: "wrong",
				Address: fmt.Sprintf("192.0.2.%d", i)}); !errors.Is(err, access.ErrRefused) {
				t.Fatalf("try %d: %v", i, err)
			}
		}
		begun := time.Now()
		if _, err := g.SignIn(t.Context(), access.Login{Name: "ann", Password: "right",
			Address: "198.51.100.1"}); err != nil {
			t.Errorf("the owner is locked out: %v", err)
		}
		if took := time.Since(begun); took < time.Second {
			t.Errorf("it took only %s", took)
		}
	})
}

// Strangers choose how many names and, with IPv6, how many addresses they try:
// neither makes a row for each of them.
func TestStrangersMakeFewRows(t *testing.T) {
	db, c := jobstest.Migrated(t, jobstest.SQLite), newClock()
	g := &access.Authenticator{Store: access.NewStore(db.DB, c.now)}
	const names = 300
	for i, hash := 0, hashOf(t, "right"); i < names; i++ {
		g.Users = append(g.Users, access.User{Name: fmt.Sprint("name", i), PasswordHash: hash, Role: access.Viewer})
	}
	grown := func(class, network string) int {
		count := func() (n int) {
			if err := db.Get(&n, "SELECT COUNT(*) FROM cmsjobs_logins WHERE class = ?", class); err != nil {
				t.Fatal(err)
			}
			return n
		}
		before := count()
		for i, u := range g.Users {
			if _, err := g.SignIn(t.Context(), access.Login{Name: u.Name, Password: "wrong",
				Address: fmt.Sprintf("2001:db8:%s:%x::1", network, i)}); !errors.Is(err, access.ErrRefused) {
				t.Fatalf("try %d: %v", i, err)
			}
		}
		return count() - before
	}
	if n := grown("account", "a"); n < names/2 || n >= names {
		t.Errorf("%d accounts made %d rows: they share none of 4,096", names, n)
	}
	db.MustExec(`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10000) INSERT INTO
		cmsjobs_logins (subject, class, address, failures, since, expires_at)
		SELECT 'other ' || i, 'address', '', 1, ?, ? FROM n`, c.now().UnixMilli(), c.now().Add(time.Hour).UnixMilli())
	if n := grown("address", "b"); n < names/2 || n >= names {
		t.Errorf("%d addresses more than 10,000 made %d rows: they share none of 4,096", names, n)
	}
}

func TestANetworkIsOneAddress(t *testing.T) {
	for address, want := range map[string]string{"192.0.2.1": "192.0.2.1", "::ffff:192.0.2.1": "192.0.2.1",
		"2001:db8:1:2:3:4:5:6": "2001:db8:1:2::/64",
		"fe80::1%eth0":         "fe80::/64", "what": "what"} {
		if got := access.Network(address); got != want {
			t.Errorf("%s is %s, want %s", address, got, want)
		}
	}
}

func TestWrongSignInsAtTheSameTimeAllCount(t *testing.T) {
	everywhere(t, func(t *testing.T, s *access.Store, _ *clock) {
		g := gate(t, s, nil)
		var looked, throttled int
		var mu sync.Mutex
		var wg sync.WaitGroup
		for range 30 {
			wg.Go(func() {
				_, err := g.SignIn(t.Context(), access.Login{Name: "ann", Password: "wrong", Address: "192.0.2.1"})
				mu.Lock()
				defer mu.Unlock()
				switch {
				case errors.Is(err, access.ErrThrottled):
					throttled++
				case errors.Is(err, access.ErrRefused):
					looked++
				default:
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if looked > 10 || looked+throttled != 30 {
			t.Errorf("%d passwords were looked at, %d refused before; at most 10 may be looked at", looked, throttled)
		}
	})
}

func TestAKeyMeansOneRequest(t *testing.T) {
	everywhere(t, func(t *testing.T, s *access.Store, c *clock) {
		ctx := t.Context()
		first, err := s.Reserve(ctx, "token 1", "k", "body", "uuid-1")
		if err != nil || !first.Fresh {
			t.Fatalf("%+v, %v", first, err)
		}
		again, err := s.Reserve(ctx, "token 1", "k", "body", "uuid-2")
		if err != nil || again.Fresh || again.UUID != "uuid-1" || again.Answer != nil {
			t.Errorf("before the answer: %+v, %v", again, err)
		}
		if err := s.Remember(ctx, first, []byte(`{"id":"uuid-1"}`)); err != nil {
			t.Fatal(err)
		}
		if again, err = s.Reserve(ctx, "token 1", "k", "body", "uuid-3"); err != nil ||
			string(again.Answer) != `{"id":"uuid-1"}` {
			t.Errorf("after the answer: %+v, %v", again, err)
		}
		if _, err := s.Reserve(ctx, "token 1", "k", "other", "x"); !errors.Is(err, access.ErrKeyReused) {
			t.Errorf("another body: %v", err)
		}
		if other, err := s.Reserve(ctx, "token 2", "k", "other", "x"); err != nil || !other.Fresh {
			t.Errorf("another caller shares the key: %+v, %v", other, err)
		}
		c.add(24*time.Hour + time.Second)
		if late, err := s.Reserve(ctx, "token 1", "k", "other", "y"); err != nil || !late.Fresh {
			t.Errorf("after a day: %+v, %v", late, err)
		}
	})
}

func TestTheAuditLogKeepsWhatWasDone(t *testing.T) {
	everywhere(t, func(t *testing.T, s *access.Store, c *clock) {
		ctx := t.Context()
		for _, target := range []string{"a", "b", "a\x00\xff" + strings.Repeat("é", 200)} {
			if err := s.Record(ctx, access.AuditEntry{Actor: "ann", Via: "session", Address: "192.0.2.1",
				Action: "jobs.requeue", Target: target, Status: 200, Detail: strings.Repeat("x", 9000)}); err != nil {
				t.Fatal(err)
			}
			c.add(time.Hour)
		}
		page, err := s.AuditEntries(ctx, access.AuditFilter{Actor: "ann"}, jobs.Page{Limit: 2})
		if err != nil || len(page.Items) != 2 || page.Next == "" || page.Items[1].Target != "b" {
			t.Fatalf("%+v, %v", page, err)
		}
		rest, err := s.AuditEntries(ctx, access.AuditFilter{Actor: "ann"}, jobs.Page{Limit: 2, Cursor: page.Next})
		if err != nil || len(rest.Items) != 1 || rest.Items[0].Target != "a" || rest.Next != "" {
			t.Errorf("%+v, %v", rest, err)
		}
		if err := s.Sweep(ctx, access.Retention{Audit: 90 * time.Minute}); err != nil {
			t.Fatal(err)
		}
		left, err := s.AuditEntries(ctx, access.AuditFilter{}, jobs.Page{Limit: 10})
		if err != nil || len(left.Items) != 1 {
			t.Errorf("%d entries are left of 3, want the newest: %v", len(left.Items), err)
		}
	})
}

func TestRolesGrow(t *testing.T) {
	for i, role := range access.Roles() {
		for _, scope := range access.AllScopes() {
			if i > 0 && access.Roles()[i-1].Scopes().Has(scope) && !role.Scopes().Has(scope) {
				t.Errorf("%s lacks %s, which a weaker role has", role, scope)
			}
		}
	}
	if access.Role("boss").Scopes() != nil {
		t.Error("an unknown role has rights")
	}
	got, err := access.ParseScopes("read, enqueue read")
	if err != nil || !slices.Equal(got, access.Scopes{access.Read, access.Enqueue}) {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := access.ParseScopes("root"); err == nil {
		t.Error("an unknown scope is read")
	}
}

// away is a CMS whose database does not answer.
type away struct{ err error }

func (a *away) AccountByLogin(context.Context, string) (access.Account, error) {
	return access.Account{}, a.err
}

// A sign-in that fails because a database does not answer counts for nobody,
// however often: neither for the address nor for the account. Wrong passwords do.
func TestOurOwnFaultsAreNoWrongPasswords(t *testing.T) {
	everywhere(t, func(t *testing.T, s *access.Store, _ *clock) {
		cms := &away{errors.New("connection refused")}
		g := gate(t, s, cms)
		login := access.Login{Name: "root", Password: "x", Address: "192.0.2.7"}
		for i := range 40 {
			if _, err := g.SignIn(t.Context(), login); !errors.Is(err, cms.err) {
				t.Fatalf("try %d: %v", i, err)
			}
		}
		cms.err = jobs.ErrNotFound
		refused := 0
		for range 40 {
			_, err := g.SignIn(t.Context(), login)
			if errors.Is(err, access.ErrThrottled) {
				break
			}
			if refused++; !errors.Is(err, access.ErrRefused) {
				t.Fatal(err)
			}
		}
		if refused != 10 {
			t.Errorf("%d wrong passwords until the address is refused, want 10", refused)
		}
	})
}
