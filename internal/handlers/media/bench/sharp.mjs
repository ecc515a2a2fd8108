// The peer: sharp, as people use it ("usual": each size from the file), and at
// its best ("best": one decode, the smaller sizes from the larger one).
// usage: node sharp.mjs usual|best FILE TIMES
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
const sharp = createRequire(process.cwd() + '/')('sharp');

const [way, file, times] = process.argv.slice(2);
sharp.concurrency(1);
sharp.cache(false);
const png = file.endsWith('.png');
const out = (s) => (png ? s.png() : file.endsWith('.webp') ? s.webp({ quality: 80 }) : s.jpeg({ quality: 80 })).toBuffer();

const keep = (size, buffer) => process.env.BENCH_OUT && writeFileSync(`${process.env.BENCH_OUT}/sharp-${size}.${file.split('.').pop()}`, buffer);

async function usual() {
  const data = readFileSync(file);
  keep(150, await out(sharp(data).rotate().resize(150, 150, { fit: 'cover' })));
  keep(300, await out(sharp(data).rotate().resize(300, 300, { fit: 'cover' })));
  keep(800, await out(sharp(data).rotate().resize(800, 800, { fit: 'inside', withoutEnlargement: true })));
}
async function best() {
  const data = readFileSync(file);
  const raw = ({ data, info }) => sharp(data, { raw: { width: info.width, height: info.height, channels: info.channels } });
  const large = await sharp(data).rotate().resize(800, 800, { fit: 'inside', withoutEnlargement: true }).raw().toBuffer({ resolveWithObject: true });
  await out(raw(large));
  const medium = await raw(large).resize(300, 300, { fit: 'cover' }).raw().toBuffer({ resolveWithObject: true });
  await out(raw(medium));
  await out(raw(medium).resize(150, 150));
}
const render = way === 'usual' ? usual : best;
await render();
const before = process.cpuUsage();
let left = Number(times);
await Promise.all([0, 1].map(async () => { while (left-- > 0) await render(); }));
const used = process.cpuUsage(before);
console.log(`sharp-${way}`.padEnd(14), ((used.user + used.system) / 1000 / Number(times)).toFixed(1).padStart(8), 'ms',
  String(Math.round(process.resourceUsage().maxRSS / 1024)).padStart(6), 'MB');
