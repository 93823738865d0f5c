/** Creates bots with webhooks, people who write to these bots, and the receiver of the updates. */
import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { call, expect, inParallel, makePair, type Pair, WrongAnswer } from '../../src/loadtest/client.js';
import type { Sent } from '../../src/loadtest/fixed_rate.js';
import { plainWire } from '../load/plain_wire.js';
import { makeCertificate } from '../service/certificate.js';
import { makePeople, openChats, type Person, text } from '../service/population.js';
import { otherCore } from '../service/processes.js';
import type { Program, Service } from '../service/service.js';
import type { Books, Expected, ReceiverAsk, ReceiverTask, ReceiverWord } from './webhook_receiver.js';

export const bots = 20;
const connections_max = 40;
/**
 * The number of chats per bot. Each chat uses only one connection at a time. A bot with more chats than connections
 * keeps all connections busy.
 */
const people_count = 48;
/** How long to wait until all updates of a round have arrived, in ms. */
const round_ms_max = 120_000;
/** How long to wait for duplicates at the end of a round, in ms. */
const late_ms = 300;

export interface WebhookBots {
  readonly origin: string;
  readonly receiver: { readonly pid: number };
  readonly certificate: string;
  readonly secretToken: string;
  /** Starts to record a round. Without `connections`, the receiver answers immediately. */
  expect(round: Omit<Expected, 'kind' | 'connections'> & { readonly connections?: number }): void;
  reached(point: 'from' | 'until' | 'done'): Promise<void>;
  /** Stops recording. Throws WrongAnswer unless every update of the round arrived exactly once, correctly signed. */
  books(count: number, requests: boolean): Promise<Books>;
  /** Sets (`on`) or deletes the webhooks of all bots. `connections` is the limit per bot. */
  set(on: boolean, drop?: boolean, connections?: number): Promise<void>;
  /**
   * Sends a message from a person to a bot. `number` is the sequence number of the resulting update. `due` is the Unix
   * time in ms when the message should be sent.
   */
  say(number: number, due: number): Promise<void>;
  close(): Promise<void>;
}

function listenTo(receiver: Program<ReceiverWord>, signal: AbortSignal) {
  const received = new Map<string, ReceiverWord>();
  receiver.child.on('message', (word: ReceiverWord) => received.set(word.kind, word));
  return {
    ask(ask: ReceiverAsk) {
      if (ask.kind === 'expect') received.clear();
      receiver.child.send(ask);
    },
    async word<K extends ReceiverWord['kind']>(kind: K): Promise<Extract<ReceiverWord, { kind: K }>> {
      const end = performance.now() + round_ms_max;
      for (let word = received.get(kind); ; word = received.get(kind)) {
        if (word) return word as Extract<ReceiverWord, { kind: K }>;
        expect(performance.now() < end, `the receiver did not send "${kind}"`);
        await sleep(1, undefined, { signal });
      }
    },
  };
}

export async function makeWebhookBots(service: Service, name: string): Promise<WebhookBots> {
  const { front, adminToken } = service;
  const certificate = makeCertificate();
  const secretToken = randomBytes(24).toString('hex');
  const task: ReceiverTask = { certificate, secretToken };
  const receiver = await service.startProgram<ReceiverWord>('measurements/webhook_receiver', task, otherCore);
  const { first } = receiver;
  expect(first.kind === 'listening' && first.port > 0, 'the receiver did not start');
  const origin = `https://127.0.0.1:${first.port}`;
  const { ask, word } = listenTo(receiver, service.signal);

  const pairs = await inParallel(bots, 4, (i) => makePair(front.baseUrl, adminToken, `${name}_${i}`));
  const people = await makePeople(service, `${name}_person`, people_count);
  await inParallel(bots, 2, (i) => openChats(service, pairs[i] as Pair, people));
  const wire = await plainWire(front.baseUrl, 128);
  const waiting: Array<() => void> = [];
  const send = (request: Sent) =>
    new Promise<void>((resolve, reject) => {
      const start = () =>
        wire.send(request, (status, why) => {
          waiting.shift()?.();
          if (status === 200) resolve();
          else reject(new WrongAnswer(`sending a message failed with ${status} ${why}`));
        });
      if (wire.free() > 0) start();
      else waiting.push(start);
    });

  return {
    origin,
    receiver,
    certificate: certificate.cert,
    secretToken,
    expect: (round) => ask({ kind: 'expect', connections: 0, ...round }),
    async reached(point) {
      await word(point);
    },
    async books(count, requests) {
      await sleep(late_ms, undefined, { signal: service.signal });
      ask({ kind: 'tell', requests });
      const books = await word('books');
      const { arrived, distinct, wrongSignatures } = books;
      expect(
        arrived === count && distinct === count && wrongSignatures === 0,
        `of ${count} updates ${distinct} arrived in ${arrived} deliveries, ${wrongSignatures} of them with a wrong signature`,
      );
      return books;
    },
    async set(on, drop = false, connections = connections_max) {
      const settings = {
        certificate: certificate.cert,
        secret_token: secretToken,
        max_connections: connections,
      };
      await inParallel(bots, bots, (i) =>
        call(`${front.baseUrl}/bot${(pairs[i] as Pair).bot.token}/${on ? 'setWebhook' : 'deleteWebhook'}`, {
          body: { drop_pending_updates: drop, ...(on ? { url: `${origin}/${i}`, ...settings } : {}) },
        }),
      );
    },
    say(number, due) {
      // The bots take turns, so consecutive numbers belong to different bots. When every bot has had its turn, the next
      // person writes.
      const { bot } = pairs[number % bots] as Pair;
      const { token } = people[Math.floor(number / bots) % people_count] as Person;
      return send({
        method: 'POST',
        path: `/api/chats/${bot.id}/messages`,
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        body: JSON.stringify({ text: `${number} ${due.toFixed(3)} ${text}` }),
      });
    },
    async close() {
      await wire.close();
      await receiver.stop();
    },
  };
}
