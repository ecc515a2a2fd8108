// The peer of BenchmarkMillion: npm's sitemap writes the same addresses from
// the same rows. Usage: node peer.cjs <port> <database> <per file> <folder>
const { SitemapAndIndexStream, SitemapStream } = require('sitemap');
const mysql = require('mysql2');
const { createWriteStream } = require('fs');
const { Transform } = require('stream');
const { pipeline } = require('stream/promises');
const path = require('path');

const [port, database, perFile, folder] = process.argv.slice(2);
const connection = mysql.createConnection({ host: '127.0.0.1', port: Number(port), user: 'root', database, dateStrings: true });

const rows = connection.query(
  "SELECT c.id, s.`key`, s.prefix, c.created_at, c.updated_at FROM posts c LEFT JOIN slugs s ON s.reference_id = c.id AND s.reference_type = 'Botble\\\\Blog\\\\Models\\\\Post' WHERE c.status = 'published' ORDER BY c.id"
).stream({ highWaterMark: 1000 });

const items = new Transform({
  objectMode: true,
  transform(row, _, done) {
    done(null, { url: `/${row.prefix}/${row.key}`, lastmod: row.updated_at.replace(' ', 'T') + 'Z', changefreq: 'daily', priority: 0.7 });
  },
});

const map = new SitemapAndIndexStream({
  limit: Number(perFile),
  getSitemapStream: (i) => {
    const stream = new SitemapStream({ hostname: 'https://cms.example' });
    const name = `blog-posts-page-${i + 1}.xml`;
    const file = stream.pipe(createWriteStream(path.join(folder, name)));
    return [`https://cms.example/${name}`, stream, file];
  },
});

pipeline(rows, items, map, createWriteStream(path.join(folder, 'sitemap.xml')))
  .then(() => connection.end())
  .catch((error) => { console.error(error); process.exit(1); });
