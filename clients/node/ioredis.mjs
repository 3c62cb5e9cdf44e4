// Drives ioredis and iovalkey, which is made from it, with their default options.
import { library, address, login, serve } from './line.mjs';

const { Redis } = await import(library);
const client = new Redis({ ...address, ...login });
client.on('error', (err) => console.error(err.message)); // without a listener each one is printed with its stack

serve({
  call: ([name, ...args]) => client.call(name, ...args),
  async pipe(n, [name, ...args]) {
    const pipeline = client.pipeline();
    for (let i = 0; i < n; i++) pipeline.call(name, ...args);
    return (await pipeline.exec()).map(([err, reply]) => err ?? reply);
  },
});
