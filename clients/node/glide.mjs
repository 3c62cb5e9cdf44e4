// Drives valkey-glide. Its default of 250 ms for a request is shorter than what
// a call may wait for a leader, so that it is raised.
import { Batch, GlideClient, Logger } from '@valkey/valkey-glide';
import { address, login, serve } from './line.mjs';

Logger.setLoggerConfig('off');
const connect = () => GlideClient.createClient({
  addresses: [address],
  credentials: login.password && login,
  requestTimeout: 2000,
});

// createClient fails if the node is away for a moment: the next call asks again.
let client;
const connected = async () => (client ??= await connect());

serve({
  call: async (args) => (await connected()).customCommand(args),
  async pipe(n, args) {
    const batch = new Batch(false);
    for (let i = 0; i < n; i++) batch.customCommand(args);
    return (await connected()).exec(batch, false);
  },
});
