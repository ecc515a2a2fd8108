package dump

import (
	"errors"
	"strings"
	"testing"
)

// kept remembers what it was to load.
type kept struct{ strings.Builder }

func (k *kept) Load(_ Part, _ string, piece []byte) error {
	_, err := k.Write(piece)
	return err
}

func (k *kept) Close() error { return nil }

func (k *kept) Abort() error { return nil }

const plainDump = `\restrict abc
CREATE TABLE public.posts (id integer);
COPY public.posts (id, name) FROM stdin;
1	COPY public.jobs (id) FROM stdin;
2	\N
\.
COPY public.jobs (id) FROM stdin;
9	\\unrestrict
\.
COPY "my ""own"".x"."slugs" ("key") FROM stdin;
a
\.
ALTER TABLE ONLY public.posts ADD CONSTRAINT posts_pkey PRIMARY KEY (id);
\unrestrict abc
`

const rowsOfPlainDump = `\restrict abc
CREATE TABLE public.posts (id integer);
COPY public.posts (id, name) FROM stdin;
1	COPY public.jobs (id) FROM stdin;
2	\N
\.
COPY "my ""own"".x"."slugs" ("key") FROM stdin;
a
\.
\unrestrict abc
`

// Wherever the pieces end, the same lines go through.
func TestOnlyTheRowsOfNamedTablesGoThrough(t *testing.T) {
	wanted := func(table string) bool { return table == "posts" || table == "slugs" }
	for size := range len(plainDump) {
		var k kept
		p := NewPostgresRows(&k, wanted)
		for rest := plainDump; rest != ""; {
			n := min(size+1, len(rest))
			if err := p.Load(Main, "", []byte(rest[:n])); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		if err := p.Close(); err != nil || k.String() != rowsOfPlainDump {
			t.Fatalf("pieces of %d bytes: %v\n%s", size+1, err, k.String())
		}
	}
}

// A dump that ends within rows is not taken for a whole one.
func TestTornRowsAreNoDump(t *testing.T) {
	for _, end := range []string{"2\t", "COPY public.jobs"} {
		torn := plainDump[:strings.Index(plainDump, end)+len(end)]
		p := NewPostgresRows(&kept{}, func(string) bool { return true })
		if err := p.Load(Main, "", []byte(torn)); err != nil {
			t.Fatal(err)
		}
		if err := p.Close(); !errors.Is(err, ErrTorn) {
			t.Errorf("%q: %v", torn, err)
		}
	}
}
