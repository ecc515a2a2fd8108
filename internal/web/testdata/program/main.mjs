// The type shop.resize of a program in JavaScript, as main.go is one in Go.
import { existsSync } from "node:fs";
const { JobsWorker, PermanentError } = await import(process.env.SDK);
const open = (name) => existsSync(`${process.env.GATE}/${name}`);
const worker = new JobsWorker({ baseUrl: process.env.CMSJOBS_URL, token: process.env.CMSJOBS_TOKEN, name: "shop@test",
  slots: 1, lease: 5, onError: (e) => console.error(e) });
worker.handle({
  type: "shop.resize", title: "Resizes a picture", max_attempts: 2, backoff: [0],
  schema: { type: "object", additionalProperties: false, required: ["number"],
    properties: { number: { type: "integer", minimum: 1, description: "of the picture" } } },
}, async (job) => {
  const { number } = job.payload;
  job.log(`begins ${number}`);
  job.progress(1, 2, "half way");
  if (number === 13 && !open("repaired")) throw new PermanentError("13 is refused");
  while (!open(number)) {
    if (job.signal.aborted) throw new Error("stopped");
    await new Promise((done) => setTimeout(done, 20));
  }
  return { bytes: number * 10 };
});
await worker.run();
