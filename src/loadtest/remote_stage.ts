/**
 * Prepares the calls of a load on a running installation, and creates the data that these calls need. With a person's
 * token, also creates a bot for the load.
 */
import { randomBytes } from 'node:crypto';
import { call, expect, inParallel } from './client.js';
import { once, type Series } from './series.js';

export const remoteNames = ['getMe', 'sendMessage', 'editMessageText', 'personWrites', 'history'] as const;
export type RemoteName = (typeof remoteNames)[number];

export interface RemoteScenario {
  readonly name: RemoteName;
  readonly series: Series;
  verify(): Promise<void>;
}

export interface Stage {
  readonly scenarios: readonly RemoteScenario[];
  close(): Promise<void>;
}

export interface StageOptions {
  readonly url: string;
  readonly token: string;
  /** The chat to which the load sends, if the token belongs to a bot. */
  readonly chat: number | undefined;
  /**
   * The highest rate at which this load can run. The rate of edits is limited, because a message can be edited only
   * once per second.
   */
  readonly rate: number;
}

interface Message {
  readonly message_id: number;
  readonly text: string;
  readonly chat: { readonly id: number };
}

const text = 'The parcel 4711 has left the depot and will be with you between two and four in the afternoon.';
const batch = 100;

/**
 * Returns whether the token belongs to a bot. A bot's token has the letter A after its colon. An identity provider's
 * token has no colon.
 */
export const isBotToken = (token: string): boolean => /^\d+:A/.test(token);

function getMe(url: string, bot: string): RemoteScenario {
  const path = `/bot${bot}/getMe`;
  return {
    name: 'getMe',
    series: { origin: url, calls: [{ verb: 'GET', path }], rows: once },
    async verify() {
      const me = await call<{ id: number; is_bot: boolean }>(`${url}${path}`);
      expect(me.is_bot && bot.startsWith(`${me.id}:`), 'getMe returned another bot');
    },
  };
}

function sendMessage(url: string, bot: string, chat_id: number): RemoteScenario {
  const path = `/bot${bot}/sendMessage`;
  const body = JSON.stringify({ chat_id, text });
  return {
    name: 'sendMessage',
    series: { origin: url, calls: [{ verb: 'POST', path, body }], rows: once },
    async verify() {
      const sent = await call<Message>(`${url}${path}`, { body });
      expect(sent.text === text && sent.chat.id === chat_id, 'sendMessage returned another message');
    },
  };
}

async function editMessageText(
  url: string,
  bot: string,
  chat_id: number,
  rate: number,
): Promise<RemoteScenario> {
  const method = `${url}/bot${bot}`;
  const first = await call<Message>(`${method}/sendMessage`, { body: { chat_id, text } });
  const wanted = Math.ceil(rate * 1.5) + 1;
  const copies = await inParallel(Math.ceil(wanted / batch), 2, () =>
    call<Array<{ message_id: number }>>(`${method}/copyMessages`, {
      body: { chat_id, from_chat_id: chat_id, message_ids: Array(batch).fill(first.message_id) },
    }),
  );
  const ids = copies.flat().map(({ message_id }) => message_id);
  const path = `/bot${bot}/editMessageText`;
  let edits = 0;
  return {
    name: 'editMessageText',
    series: {
      origin: url,
      calls: [
        {
          verb: 'POST',
          path,
          body: `{"chat_id":${chat_id},"message_id":{1},"text":"edited in pass {pass} of {salt}"}`,
        },
      ],
      rows: ids.map((id) => [String(id)]),
    },
    async verify() {
      // Edits a message that the load does not use. Waits first, because an edit within 1 s of another edit is refused.
      await new Promise((resolve) => setTimeout(resolve, 1_100));
      const words = `edited ${++edits}`;
      const body = { chat_id, message_id: first.message_id, text: words };
      const edited = await call<Message>(`${url}${path}`, { body });
      expect(edited.text === words, 'editMessageText returned another text');
    },
  };
}

function personal(url: string, token: string, bot: number): RemoteScenario[] {
  const path = `/api/chats/${bot}/messages`;
  const body = JSON.stringify({ text });
  const newest = `${path}?limit=20`;
  const verify = async () => {
    const sent = await call<Message>(`${url}${path}`, { token, body });
    const { items } = await call<{ items: Message[] }>(`${url}${newest}`, { token });
    const [last] = items;
    expect(
      last?.message_id === sent.message_id && last.text === text,
      'the newest message of the chat is not the one sent',
    );
  };
  return [
    {
      name: 'personWrites',
      series: { origin: url, calls: [{ verb: 'POST', path, token, body }], rows: once },
      verify,
    },
    {
      name: 'history',
      series: { origin: url, calls: [{ verb: 'GET', path: newest, token }], rows: once },
      verify,
    },
  ];
}

export async function openStage({ url, token, chat, rate }: StageOptions): Promise<Stage> {
  if (isBotToken(token)) {
    const inChat =
      chat === undefined
        ? []
        : [sendMessage(url, token, chat), await editMessageText(url, token, chat, rate)];
    return { scenarios: [getMe(url, token), ...inChat], close: async () => {} };
  }
  const me = await call<{ id: number }>(`${url}/api/me`, { token });
  const username = `bench_${randomBytes(6).toString('hex')}_bot`;
  const bot = await call<{ id: number; token: string }>(`${url}/api/me/bots`, {
    token,
    body: { username, name: 'Bench' },
  });
  const close = async () => {
    await call(`${url}/api/me/bots/${bot.id}`, { verb: 'DELETE', token });
  };
  try {
    await call(`${url}/api/bots/${username}/start`, { token, body: {} });
    const scenarios = [
      getMe(url, bot.token),
      sendMessage(url, bot.token, me.id),
      await editMessageText(url, bot.token, me.id, rate),
      ...personal(url, token, bot.id),
    ];
    return { scenarios, close };
  } catch (error) {
    await close().catch(() => {});
    throw error;
  }
}
