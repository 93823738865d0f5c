/** A name server on loopback that answers over UDP and counts its queries. */
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { isIPv4 } from 'node:net';
import { type Answer, decode, encode } from 'dns-packet';

export interface NameServer {
  /** The address as `address:port`, the form that a resolver accepts. */
  readonly address: string;
  /** Sets the answer for a name: addresses, an error code, or `silent`. Unknown names are NXDOMAIN. */
  set(name: string, meaning: Meaning): void;
  asked(name: string): number;
  close(): Promise<void>;
}

export type Meaning = readonly string[] | 'SERVFAIL' | 'silent' | ((type: string) => Meaning);

const codes = { NXDOMAIN: 3, SERVFAIL: 2 };

/**
 * Starts a name server on a free port. Its answers allow caching for an hour, so that tests notice if anything caches
 * the answers.
 */
export async function startNameServer(): Promise<NameServer> {
  const zone = new Map<string, Meaning>();
  const counts = new Map<string, number>();
  const socket = createSocket('udp4');
  socket.on('message', (bytes, from) => {
    const query = decode(bytes);
    const question = query.questions?.[0];
    if (question === undefined) return;
    const name = question.name.toLowerCase();
    counts.set(name, (counts.get(name) ?? 0) + 1);
    const said = zone.get(name);
    const meaning = typeof said === 'function' ? said(question.type) : said;
    if (meaning === 'silent') return;
    const addresses = typeof meaning === 'object' ? meaning : [];
    const wanted = addresses.filter((address) => isIPv4(address) === (question.type === 'A'));
    const flags =
      0x0180 | (meaning === undefined ? codes.NXDOMAIN : meaning === 'SERVFAIL' ? codes.SERVFAIL : 0);
    const answers = wanted.map(
      (data) => ({ type: question.type, name: question.name, ttl: 3_600, data }) as Answer,
    );
    const questions = query.questions ?? [];
    socket.send(
      encode({ type: 'response', id: query.id ?? 0, flags, questions, answers }),
      from.port,
      from.address,
    );
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  return {
    address: `127.0.0.1:${socket.address().port}`,
    set: (name, meaning) => void zone.set(name, meaning),
    asked: (name) => counts.get(name) ?? 0,
    async close() {
      socket.close();
      await once(socket, 'close');
    },
  };
}
