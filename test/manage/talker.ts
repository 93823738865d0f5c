/** A person who talks with the management bot over HTTP and reads the bot's answers from the event stream. */
import { expect } from 'vitest';
import { findTokens } from '../../src/rules/token.js';
import { type EventSource, openEvents, type ServerEvent } from '../clients/event_source.js';
import { itemsOf, resultOf, type Service, type TestUser } from '../support/service.js';

export interface Shown {
  readonly message_id: number;
  readonly text: string;
  readonly entities?: ReadonlyArray<{
    readonly type: string;
    readonly offset: number;
    readonly length: number;
  }>;
  readonly reply_markup?: {
    readonly inline_keyboard: ReadonlyArray<
      ReadonlyArray<{ readonly text: string; readonly callback_data: string }>
    >;
  };
}

export interface Talker {
  readonly user: TestUser;
  readonly bot: number;
  readonly events: EventSource;
  say(text: string): Promise<Shown>;
  /** Presses the button with this label. Returns everything that the bot shows until it answers the press. */
  press(message: Shown, label: string): Promise<Pressed>;
  received(after: number): Promise<Shown>;
  history(): Promise<Shown[]>;
  close(): void;
}

export interface Pressed {
  readonly alert: string | undefined;
  /** All edited and new messages, in order. The bot sends a new message if an edit would come too early. */
  readonly shown: readonly Shown[];
  readonly last: Shown;
}

export const labels = (message: Shown): string[] =>
  (message.reply_markup?.inline_keyboard ?? []).flat().map(({ text }) => text);

/** Returns the first code entity of a message. Its text must have the format of a token. */
export const tokenIn = (message: Shown | undefined): string => {
  const mark = message?.entities?.find(({ type }) => type === 'code');
  const token = mark && message?.text.slice(mark.offset, mark.offset + mark.length);
  if (!token || !/^\d+:A[\w-]{34}$/.test(token)) throw new Error(`no token in ${JSON.stringify(message)}`);
  return token;
};

export async function newTalker(service: Service, name: string, language?: string): Promise<Talker> {
  const body = { username: `${name}_${Math.random().toString(36).slice(2, 8)}`, first_name: name };
  const { user, token } = await resultOf(
    service.app({ token: service.adminToken }, 'POST', '/api/admin/users', {
      ...body,
      ...(language ? { language_code: language } : {}),
    }),
  );
  return talkerOf(service, { ...user, token });
}

async function talkerOf(service: Service, user: TestUser): Promise<Talker> {
  const events = await openEvents(service.fronts[0].url, user.token);
  const started = await resultOf(service.app(user, 'POST', '/api/bots/petrelbot/start', {}));
  const bot = started.chat.id as number;
  const path = `/api/chats/${bot}/messages`;
  const ofBot = ({ event, data }: ServerEvent) =>
    event === 'message' && data.chat.id === bot && data.from.id === bot;
  const noted = (message: Shown): Shown => {
    for (const { token } of findTokens(message.text ?? '')) service.issued(token);
    return message;
  };
  const talker: Talker = {
    user,
    bot,
    events,
    async received(after) {
      return noted((await events.received(ofBot, after)).data);
    },
    async say(text) {
      const after = events.events.length;
      await resultOf(service.app(user, 'POST', path, { text }));
      return talker.received(after);
    },
    async press(message, label) {
      const after = events.events.length;
      const button = (message.reply_markup?.inline_keyboard ?? []).flat().find(({ text }) => text === label);
      expect(button, `a button ${label} among ${labels(message)}`).toBeDefined();
      const { callback_query_id } = await resultOf(
        service.app(user, 'POST', `${path}/${message.message_id}/callback`, { data: button?.callback_data }),
      );
      const answer = await events.received(
        ({ event, data }) => event === 'callback_answer' && data.callback_query_id === callback_query_id,
        after,
      );
      const shown = events.events
        .slice(after)
        .filter((one) => ofBot(one) || one.event === 'edited_message')
        .map(({ data }) => noted(data));
      return { alert: answer.data.text, shown, last: shown.at(-1) as Shown };
    },
    async history() {
      return itemsOf(service.app(user, 'GET', path));
    },
    close: () => events.cut(),
  };
  await talker.received(0);
  return talker;
}
