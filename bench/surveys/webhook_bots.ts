/** Bots with webhooks, the people who write to them, and the receiver of their updates. */
import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { call, expect, inParallel, makePair, type Pair, WrongAnswer } from '../../src/loadtest/client.js';
import type { Sent } from '../../src/loadtest/fixed_rate.js';
import { plainWire } from '../load/plain_wire.js';
import { makeCertificate } from '../site/certificate.js';
import { makePeople, openChats, type Person, text } from '../site/population.js';
import { otherCore } from '../site/processes.js';
import type { Program, Site } from '../site/site.js';
import type { Books, Expected, ReceiverAsk, ReceiverTask, ReceiverWord } from './webhook_receiver.js';

export const bots = 20;
export const connections = 40;
/** More than the connections, so that the order within a chat leaves no connection idle. */
const people_count = 48;
/** Longest time until all updates of a round have arrived. */
const round_ms_max = 120_000;
/** How long to wait for duplicates. */
const late_ms = 300;

export interface WebhookBots {
  readonly origin: string;
  readonly receiver: { readonly pid: number };
  readonly certificate: string;
  readonly secretToken: string;
  /** Starts the record of a round. */
  expect(round: Omit<Expected, 'kind'>): void;
  /** Waits for a point of the round. Throws when it takes too long. */
  reached(point: 'from' | 'until' | 'done'): Promise<void>;
  /** Ends the record. Throws WrongAnswer unless every update of the round came once and correctly signed. */
  books(count: number, requests: boolean): Promise<Books>;
  /** Sets or deletes the webhooks of all bots. */
  set(on: boolean, drop?: boolean): Promise<void>;
  /** A person writes to a bot: the update with this number, due at this Unix time in ms. */
  say(number: number, due: number): Promise<void>;
  close(): Promise<void>;
}

function listenTo(receiver: Program<ReceiverWord>, signal: AbortSignal) {
  const heard = new Map<string, ReceiverWord>();
  receiver.child.on('message', (word: ReceiverWord) => heard.set(word.kind, word));
  return {
    ask(ask: ReceiverAsk) {
      if (ask.kind === 'expect') heard.clear();
      receiver.child.send(ask);
    },
    async word<K extends ReceiverWord['kind']>(kind: K): Promise<Extract<ReceiverWord, { kind: K }>> {
      const end = performance.now() + round_ms_max;
      for (let word = heard.get(kind); ; word = heard.get(kind)) {
        if (word) return word as Extract<ReceiverWord, { kind: K }>;
        expect(performance.now() < end, `the receiver did not send "${kind}"`);
        await sleep(1, undefined, { signal });
      }
    },
  };
}

/** `name` distinguishes the bots of two surveys. */
export async function makeWebhookBots(site: Site, name: string): Promise<WebhookBots> {
  const { front, adminToken } = site;
  const certificate = makeCertificate();
  const secretToken = randomBytes(24).toString('hex');
  const task: ReceiverTask = { certificate, secretToken };
  const receiver = await site.startProgram<ReceiverWord>('surveys/webhook_receiver', task, otherCore);
  const { first } = receiver;
  expect(first.kind === 'listening' && first.port > 0, 'the receiver did not start');
  const origin = `https://127.0.0.1:${first.port}`;
  const { ask, word } = listenTo(receiver, site.signal);

  const pairs = await inParallel(bots, 4, (i) => makePair(front.baseUrl, adminToken, `${name}_${i}`));
  const people = await makePeople(site, `${name}_person`, people_count);
  await inParallel(bots, 2, (i) => openChats(site, pairs[i] as Pair, people));
  const wire = await plainWire(front.baseUrl, 128);
  /** Callers waiting for a free connection. */
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
    expect: (round) => ask({ kind: 'expect', ...round }),
    async reached(point) {
      await word(point);
    },
    async books(count, requests) {
      await sleep(late_ms, undefined, { signal: site.signal });
      ask({ kind: 'tell', requests });
      const books = await word('books');
      const { arrived, distinct, wrongSignatures } = books;
      expect(
        arrived === count && distinct === count && wrongSignatures === 0,
        `of ${count} updates ${distinct} arrived in ${arrived} deliveries, ${wrongSignatures} of them with a wrong signature`,
      );
      return books;
    },
    async set(on, drop = false) {
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
      // One bot after another, and per bot one person after another.
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
