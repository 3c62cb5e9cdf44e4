// The drivers' side of the line protocol (clients/README.md).
import { createInterface } from 'node:readline';
import { readFileSync } from 'node:fs';

const [, , name, host, port, user, password] = process.argv;
if (password === undefined) {
  console.error('usage: node DRIVER PACKAGE HOST PORT USER PASSWORD');
  process.exit(2);
}

// What the driver was started with: the package's name in package.json, and
// where to connect; user and password are undefined if they are empty.
export const library = name;
export const address = { host, port: Number(port) };
export const login = { username: user || undefined, password: password || undefined };

const words = (reply) => (Array.isArray(reply) ? reply.map(words).join(' ') : String(reply).trim());

const version = () => JSON.parse(readFileSync(new URL(`node_modules/${library}/package.json`, import.meta.url))).version;

// tally is allowed, denied and errors of replies to CL.THROTTLE.
function tally(replies) {
  const count = [0, 0, 0];
  for (const reply of replies) {
    count[!Array.isArray(reply) || reply.length !== 5 ? 2 : Number(reply[0]) === 0 ? 0 : 1]++;
  }
  return count;
}

async function answer(verb, rest, { call, pipe }) {
  switch (verb) {
    case 'call': return call(rest);
    case 'pipe': return tally(await pipe(Number(rest[0]), rest.slice(1)));
    case 'version': return version();
    default: throw new Error(`unknown line ${verb}`);
  }
}

// serve answers stdin until it ends. call gives a reply; pipe gives all of
// them, with an error in the place of a reply that is one.
export async function serve(client) {
  for await (const line of createInterface({ input: process.stdin })) {
    const [verb, ...rest] = line.trim().split(/\s+/);
    if (verb === 'quit') break;
    try {
      console.log(`ok ${words(await answer(verb, rest, client))}`);
    } catch (err) {
      console.log(`err ${(err?.message || String(err)).replace(/\s+/g, ' ')}`);
    }
  }
  process.exit(0);
}
