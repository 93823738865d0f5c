/**
 * The bot that each client library runs. Through the calls of the library, the bot uses the features that bots usually
 * need.
 */
import type { Answer } from '../support/service.js';

// biome-ignore lint/suspicious/noExplicitAny: updates of every kind
export type Update = any;
type Json = Answer['body'];

/** The functions through which the feature bot uses one client library. */
export interface LibraryCalls {
  /** Calls a method of the library with the parameters of the Bot API. */
  call(method: string, params: Record<string, unknown>): Promise<Json>;
  /** Prepares a new file for upload by the library. The result is a parameter of `call`. */
  file(bytes: Buffer, name: string): unknown;
  /**
   * Turns the id of a stored file into the value that the library expects as a parameter of `call`. Some libraries do
   * not accept the id as text.
   */
  stored(fileId: string): unknown;
  /** Returns the `description` of an error that the library has thrown. */
  description(error: unknown): string;
  /** The address from which the library downloads files. */
  fileUrl(filePath: string): string;
}

const button = (text: string, callback_data: string) => ({ text, callback_data });
const menu = (n: number) => ({ inline_keyboard: [[button('+', `add:${n}`), button('same', `same:${n}`)]] });

const commands: Readonly<
  Record<string, (api: LibraryCalls, message: Json, rest: string, picture: Buffer) => Promise<unknown>>
> = {
  async menu({ call }, { chat }) {
    return call('sendMessage', { chat_id: chat.id, text: 'count 0', reply_markup: menu(0) });
  },
  async photo({ call, file }, { chat, message_id }, rest, picture) {
    const reply_parameters = { message_id };
    await call('sendPhoto', {
      ...{ chat_id: chat.id, photo: file(picture, 'p.png'), caption: `*${rest}*` },
      ...{ parse_mode: 'MarkdownV2', reply_parameters },
    });
  },
  async album({ call, file, stored }, { chat }, _rest, picture) {
    const sent = await call('sendPhoto', { chat_id: chat.id, photo: file(picture, 'first.png') });
    const media = sent.photo.at(-1).file_id;
    const items = ['one', 'two'].map((caption) => ({ type: 'photo', media: stored(media), caption }));
    await call('sendMediaGroup', { chat_id: chat.id, media: items });
  },
  async file({ call, file, fileUrl }, { chat }, rest) {
    const document = file(Buffer.from(rest), 'notes.txt');
    const sent = await call('sendDocument', { chat_id: chat.id, document });
    const { file_path } = await call('getFile', { file_id: sent.document.file_id });
    const text = await (await fetch(fileUrl(file_path))).text();
    await call('sendMessage', { chat_id: chat.id, text: `file: ${text}` });
  },
  async keys({ call }, { chat }) {
    const reply_markup = { keyboard: [[{ text: 'Yes' }, { text: 'No' }]], resize_keyboard: true };
    await call('sendMessage', { chat_id: chat.id, text: 'Sure?', reply_markup });
  },
  async poll({ call }, { chat }) {
    const options = [{ text: 'tea' }, { text: 'milk' }];
    await call('sendPoll', { chat_id: chat.id, question: 'What?', options, is_anonymous: false });
  },
  async close({ call }, { chat, reply_to_message }) {
    const { message_id } = reply_to_message;
    const poll = await call('stopPoll', { chat_id: chat.id, message_id });
    const counts = poll.options.map((option: Json) => `${option.text} ${option.voter_count}`);
    await call('sendMessage', { chat_id: chat.id, text: `closed: ${counts.join(', ')}` });
  },
  async mute({ call }, { chat }, rest) {
    const user = { chat_id: chat.id, user_id: Number(rest) };
    await call('restrictChatMember', { ...user, permissions: { can_send_messages: false } });
    await call('sendMessage', { chat_id: chat.id, text: 'muted' });
  },
  async promote({ call }, { chat }, rest) {
    await call('promoteChatMember', { chat_id: chat.id, user_id: Number(rest), can_pin_messages: true });
    const members: Json[] = await call('getChatAdministrators', { chat_id: chat.id });
    const promoted = members.find(({ user }) => user.id === Number(rest));
    await call('sendMessage', { chat_id: chat.id, text: `pins: ${promoted?.can_pin_messages}` });
  },
  async name({ call, file }, { chat, message_id }, rest, picture) {
    const chat_id = chat.id;
    await call('setChatTitle', { chat_id, title: rest });
    await call('setChatDescription', { chat_id, description: `About ${rest}` });
    await call('setChatPhoto', { chat_id, photo: file(picture, 'a.png') });
    await call('pinChatMessage', { chat_id, message_id });
    const { title, description, photo, pinned_message } = await call('getChat', { chat_id });
    const text = [title, description, photo ? 'photo' : 'no photo', pinned_message?.text].join(', ');
    await call('sendMessage', { chat_id, text });
  },
  async ban({ call, description }, { chat }, rest) {
    const user = { chat_id: chat.id, user_id: Number(rest) };
    const text = await call('banChatMember', user).then(
      async () => (await call('getChatMember', user)).status,
      description,
    );
    await call('sendMessage', { chat_id: chat.id, text });
  },
};

async function press({ call, description }: LibraryCalls, query: Json): Promise<void> {
  const [action, n] = query.data.split(':');
  const next = Number(n) + (action === 'add' ? 1 : 0);
  const target = query.inline_message_id
    ? { inline_message_id: query.inline_message_id }
    : { chat_id: query.message.chat.id, message_id: query.message.message_id };
  const edit = () => call('editMessageText', { ...target, text: `count ${next}`, reply_markup: menu(next) });
  const answer = (text: string, show_alert: boolean) =>
    call('answerCallbackQuery', { callback_query_id: query.id, text, show_alert });
  if (action === 'same') {
    await answer(await edit().then(() => 'edited', description), false);
    return;
  }
  await answer(`now ${next}`, next === 3);
  await edit();
}

async function answerInline({ call }: LibraryCalls, { id, query }: Json): Promise<void> {
  const results = [1, 2].map((by) => ({
    ...{ type: 'article', id: `${by}`, title: `${query} ${by}` },
    ...{ input_message_content: { message_text: 'count 0' }, reply_markup: menu(0) },
  }));
  await call('answerInlineQuery', { inline_query_id: id, results, cache_time: 300 });
}

/** Asks the person for a number and then for a city. The map `asked` contains the answers so far, keyed by person. */
async function converse(
  { call }: LibraryCalls,
  asked: Map<number, string[]>,
  { chat, from, text }: Json,
): Promise<boolean> {
  const given = text === '/order' ? [] : asked.get(from.id);
  if (!given) return false;
  const say = (words: string) => call('sendMessage', { chat_id: chat.id, text: words });
  if (text === '/order') {
    asked.set(from.id, []);
    await say('How many?');
  } else if (given.length === 0 && !/^\d+$/.test(text)) await say('A number, please.');
  else if (given.length === 0) {
    asked.set(from.id, [text]);
    await say('To which city?');
  } else {
    asked.delete(from.id);
    await say(`${given[0]} to ${text}`);
  }
  return true;
}

/** Returns the function that handles each update. The function rejects if a call fails that must succeed. */
export function createFeatureBot(api: LibraryCalls, picture: Buffer): (update: Update) => Promise<void> {
  const asked = new Map<number, string[]>();
  return async (update) => {
    if (update.callback_query) return press(api, update.callback_query);
    if (update.inline_query) return answerInline(api, update.inline_query);
    const { chosen_inline_result: chosen, poll_answer: vote, message } = update;
    if (chosen) await api.call('sendMessage', { chat_id: chosen.from.id, text: `chose ${chosen.result_id}` });
    if (vote) await api.call('sendMessage', { chat_id: vote.user.id, text: `voted ${vote.option_ids}` });
    for (const { first_name } of message?.new_chat_members ?? [])
      await api.call('sendMessage', { chat_id: message.chat.id, text: `Welcome, ${first_name}` });
    if (!message?.text || (await converse(api, asked, message))) return;
    const [, name, rest] = /^\/(\w+)\s*(.*)$/.exec(message.text) ?? [];
    await commands[name ?? '']?.(api, message, rest ?? '', picture);
    if (message.text === 'Yes' || message.text === 'No') {
      const removed = { text: `You said ${message.text}`, reply_markup: { remove_keyboard: true } };
      await api.call('sendMessage', { chat_id: message.chat.id, ...removed });
    }
  };
}
