/** The calls that are measured: how each is made, what its floor is, and how its answers are verified. */
import { isDeepStrictEqual } from 'node:util';
import { call, expect, makePair, type Pair } from './client.js';
import type { LoadRequest } from './load.js';
import type { Site, Target } from './site.js';

export interface Side {
  readonly target: Target;
  readonly request: LoadRequest;
  /** Throws WrongAnswer unless the server answers as it must. Returns the id of the newest message, 0 without one. */
  verify(): Promise<number>;
}

export interface Prepared {
  readonly floor: Side;
  readonly service: Side;
}

export interface Scenario {
  readonly name: string;
  /** Row of the plan of proof. */
  readonly proof: string;
  /** Least share of the floor's rate. */
  readonly goal: number;
  /** Script calls that one call may cost. */
  readonly scripts: number;
  /** Each acknowledged call makes one message, and its id says how many there are. */
  readonly countsMessages: boolean;
  prepare(site: Site): Promise<Prepared>;
}

async function bodyOf({ url, body }: LoadRequest): Promise<string> {
  const response = await fetch(url, {
    signal: AbortSignal.timeout(10_000),
    ...(body === undefined ? {} : { method: 'POST', headers: { 'content-type': 'application/json' }, body }),
  });
  const text = await response.text();
  expect(response.status === 200, `answered ${response.status} ${text.slice(0, 200)}`);
  expect(response.headers.get('content-type') === 'application/json', 'the answer is not labelled as JSON');
  return text;
}

const getMe: Scenario = {
  name: 'getMe',
  proof: 'P1',
  goal: 0.8,
  scripts: 0,
  countsMessages: false,
  async prepare(site) {
    const { bot } = await makePair(site.front.baseUrl, site.adminToken, 'get_me');
    const request = (target: Target) => ({
      url: `${target.baseUrl}/bot${bot.token}/getMe`,
      body: undefined,
    });
    const wanted = await bodyOf(request(site.front));
    const { ok, result } = JSON.parse(wanted) as { ok: boolean; result: Record<string, unknown> };
    const { id, username, is_bot: isBot, first_name: name } = result;
    expect(
      ok && id === bot.id && username === bot.username && isBot === true && name === bot.name,
      `getMe says ${wanted}`,
    );
    const side = (target: Target): Side => ({
      target,
      request: request(target),
      async verify() {
        const body = await bodyOf(request(target));
        expect(body === wanted, `getMe says ${body} instead of ${wanted}`);
        return 0;
      },
    });
    return {
      floor: side(await site.startFloor({ kind: 'get_me', body: wanted })),
      service: side(site.front),
    };
  },
};

interface Message {
  readonly message_id: number;
  readonly from: { readonly id: number };
  readonly chat: { readonly id: number };
  readonly date: number;
  readonly text: string;
}

const text = 'The parcel 4711 has left the depot and will be with you between two and four in the afternoon.';

/** Sends a few messages one after another; the user must find them, in order and with what was answered. */
async function verifySends(site: Site, { bot, user }: Pair, request: LoadRequest): Promise<number> {
  const sent: Message[] = [];
  for (let i = 0; i < 3; i++) {
    const { ok, result } = JSON.parse(await bodyOf(request)) as { ok: boolean; result: Message };
    expect(ok && result.text === text, 'sendMessage answers with another text');
    expect(result.from.id === bot.id && result.chat.id === user.id, 'sendMessage names others');
    expect(Math.abs(Date.now() / 1000 - result.date) < 60, `sendMessage is dated ${result.date}`);
    sent.push(result);
  }
  const history = await call<Message[]>(
    `${site.front.baseUrl}/api/chats/${bot.id}/messages?limit=${sent.length}`,
    { token: user.token },
  );
  for (const [i, message] of sent.entries()) {
    const seen = history[sent.length - 1 - i];
    const previous = sent[i - 1]?.message_id ?? message.message_id - 1;
    expect(message.message_id === previous + 1, 'message ids do not go up by one');
    expect(
      seen?.message_id === message.message_id &&
        seen.text === text &&
        seen.date === message.date &&
        seen.from.id === bot.id,
      `message ${message.message_id} is not in the history`,
    );
  }
  return sent.at(-1)?.message_id ?? 0;
}

const sendMessage: Scenario = {
  name: 'sendMessage',
  proof: 'P2',
  goal: 0.8,
  scripts: 1,
  countsMessages: true,
  async prepare(site) {
    const [own, floors] = [
      await makePair(site.front.baseUrl, site.adminToken, 'send'),
      await makePair(site.front.baseUrl, site.adminToken, 'send_floor'),
    ];
    const request = (target: Target, { bot, user }: Pair): LoadRequest => ({
      url: `${target.baseUrl}/bot${bot.token}/sendMessage`,
      body: JSON.stringify({ chat_id: user.id, text }),
    });
    const side = (target: Target, pair: Pair): Side => ({
      target,
      request: request(target, pair),
      verify: () => verifySends(site, pair, request(target, pair)),
    });
    const made = await bodyOf(request(site.front, floors));
    const { result } = JSON.parse(made) as { result: Message };
    const floor = await site.startFloor({
      kind: 'send_message',
      redisUrl: site.redisUrl,
      partitions: site.partitions,
      pair: floors,
      from: result.from,
      chat: result.chat,
    });
    const bare = JSON.parse(await bodyOf(request(floor, floors))) as { result: Message };
    const fixed = ({ message_id: _, date: __, ...rest }: Message) => rest;
    expect(isDeepStrictEqual(fixed(bare.result), fixed(result)), 'the floor answers with another shape');
    return { floor: side(floor, floors), service: side(site.front, own) };
  },
};

export const scenarios: readonly Scenario[] = [getMe, sendMessage];
