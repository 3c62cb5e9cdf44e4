// Drives node-redis with its default options. It pipelines what is sent in one
// turn of the event loop.
import { library, address, login, serve } from './line.mjs';

const { createClient } = await import(library);
const client = createClient({ socket: address, ...login });
client.on('error', (err) => console.error(err.message)); // without a listener the process ends
const connected = client.connect(); // goes on trying; rejected if the password is wrong
connected.catch((err) => console.error(err.message));

serve({
  async call(args) {
    await connected;
    return client.sendCommand(args);
  },
  async pipe(n, args) {
    await connected;
    const all = await Promise.allSettled(Array.from({ length: n }, () => client.sendCommand(args)));
    return all.map(({ value, reason }) => reason ?? value);
  },
});
