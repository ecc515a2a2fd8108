// The peer of BenchmarkWriter: npm's sitemap writes addresses that are made in
// memory. Usage: node peer_writer.cjs <addresses> <per file> <folder>
const { SitemapAndIndexStream, SitemapStream } = require('sitemap');
const { createWriteStream } = require('fs');
const { Readable } = require('stream');
const { pipeline } = require('stream/promises');
const path = require('path');

const [count, perFile, folder] = process.argv.slice(2);

function* items() {
  const start = Date.UTC(2026, 1, 1);
  for (let i = 0; i < Number(count); i++) {
    const lastmod = new Date(start + (i % 86400) * 1000).toISOString();
    yield { url: `/news/a-post-with-a-title-of-usual-length-${i}`, lastmod, changefreq: 'daily', priority: 0.7 };
  }
}

const map = new SitemapAndIndexStream({
  limit: Number(perFile),
  getSitemapStream: (i) => {
    const stream = new SitemapStream({ hostname: 'https://cms.example' });
    const name = `posts-${i + 1}.xml`;
    return [`https://cms.example/${name}`, stream, stream.pipe(createWriteStream(path.join(folder, name)))];
  },
});

pipeline(Readable.from(items()), map, createWriteStream(path.join(folder, 'sitemap.xml')))
  .catch((error) => { console.error(error); process.exit(1); });
