/**
 * The steps in which people talk to the feature bot. The steps check only what the bot writes in chats, so they work
 * with a bot in any programming language.
 */
import { expect } from 'vitest';
import {
  type Answer,
  itemsOf,
  resultOf,
  type Service,
  type TestBot,
  type TestUser,
} from '../support/service.js';
import { eventually } from './event_source.js';

type Json = Answer['body'];

export interface Scene {
  readonly service: Service;
  readonly bot: TestBot;
  /** The person who owns the bot and the group. Both `ann` and `ben` have opened a direct chat with the bot. */
  readonly ann: TestUser;
  readonly ben: TestUser;
  /** A group in which the bot is an administrator with all rights that it needs. */
  readonly group: number;
}

export async function openScene(service: Service, name: string): Promise<Scene> {
  const [ann, ben] = [await service.newUser('ann'), await service.newUser('ben')];
  const bot = await service.newBot(ann, name);
  const mode = { enabled: true, placeholder: 'Search', feedback: true };
  await resultOf(service.app(ann, 'PUT', `/api/me/bots/${bot.id}/inline_mode`, mode));
  for (const person of [ann, ben]) await service.openChat(person, bot);
  const settings = { type: 'group', title: 'Team', username: `team_of_${bot.id}` };
  const { id: group } = await resultOf(service.app(ann, 'POST', '/api/chats', settings));
  const names = ['can_restrict_members', 'can_promote_members', 'can_pin_messages', 'can_change_info'];
  const rights = Object.fromEntries(names.map((right) => [right, true]));
  const member = { status: 'administrator', rights };
  await resultOf(service.app(ann, 'PUT', `/api/chats/${group}/members/${bot.id}`, member));
  return { service, bot, ann, ben, group };
}

export const say = (
  { service }: Scene,
  who: TestUser,
  chat: number,
  text: string,
  more = {},
): Promise<Json> => resultOf(service.app(who, 'POST', `/api/chats/${chat}/messages`, { text, ...more }, 1));

/** Returns the first matching message that the bot sent after the message `after`. */
export const answered = (
  { service, bot }: Scene,
  who: TestUser,
  chat: number,
  after: number,
  matches: (message: Json) => boolean,
): Promise<Json> =>
  eventually(async () => {
    const shown = await itemsOf(service.app(who, 'GET', `/api/chats/${chat}/messages?limit=20`));
    const own = shown.filter((each: Json) => each.message_id > after && each.from?.id === bot.id);
    const found = own.findLast(matches);
    if (!found) throw new Error(`not answered; shown: ${JSON.stringify(own.map((each: Json) => each.text))}`);
    return found;
  });

/** Sends `text` as a person. Waits until the bot answers with the text `reply`. */
export async function exchange(
  scene: Scene,
  who: TestUser,
  chat: number,
  text: string,
  reply: string,
  more = {},
) {
  const { message_id } = await say(scene, who, chat, text, more);
  return answered(scene, who, chat, message_id, (message) => message.text === reply);
}

export const press = ({ service, ann }: Scene, chat: number, id: number, data: string): Promise<Json> =>
  resultOf(service.app(ann, 'POST', `/api/chats/${chat}/messages/${id}/callback`, { data }));

async function shownText({ service, ann }: Scene, chat: number, id: number): Promise<string> {
  const shown = await itemsOf(service.app(ann, 'GET', `/api/chats/${chat}/messages?limit=20`));
  return shown.find(({ message_id }: Json) => message_id === id)?.text;
}

async function conversation(scene: Scene): Promise<void> {
  const { ann, ben, bot } = scene;
  for (const who of [ann, ben]) await exchange(scene, who, bot.id, '/order', 'How many?');
  await exchange(scene, ann, bot.id, 'some', 'A number, please.');
  await exchange(scene, ann, bot.id, '3', 'To which city?');
  await exchange(scene, ben, bot.id, '7', 'To which city?');
  await exchange(scene, ann, bot.id, 'Riga 👋', '3 to Riga 👋');
  await exchange(scene, ben, bot.id, 'Rome', '7 to Rome');
}

async function menu(scene: Scene): Promise<void> {
  const { bot } = scene;
  for (const chat of [bot.id, scene.group]) {
    const { message_id } = await exchange(scene, scene.ann, chat, '/menu', 'count 0');
    for (let n = 0; n < 4; n++) {
      await press(scene, chat, message_id, `add:${n}`);
      await eventually(async () => expect(await shownText(scene, chat, message_id)).toBe(`count ${n + 1}`));
    }
  }
}

async function media(scene: Scene): Promise<void> {
  const { ann, bot } = scene;
  const asked = await say(scene, ann, bot.id, '/photo shade');
  const photo = await answered(scene, ann, bot.id, asked.message_id, (message) => message.photo);
  expect(photo).toMatchObject({
    caption: 'shade',
    caption_entities: [{ type: 'bold', offset: 0, length: 5 }],
    reply_to_message: { message_id: asked.message_id },
  });
  const { message_id } = await say(scene, ann, bot.id, '/album');
  const caption = (text: string) =>
    answered(scene, ann, bot.id, message_id, (message) => message.caption === text);
  const [one, two] = [await caption('one'), await caption('two')];
  expect(one.media_group_id).toBe(two.media_group_id);
  await exchange(scene, ann, bot.id, '/file seven words', 'file: seven words');
}

async function replyKeyboard(scene: Scene): Promise<void> {
  const { ann, bot, service } = scene;
  await exchange(scene, ann, bot.id, '/keys', 'Sure?');
  const path = `/api/chats/${bot.id}/reply_keyboard`;
  const { message } = await resultOf(service.app(ann, 'GET', path));
  expect(message.reply_keyboard).toMatchObject({ keyboard: [[{ text: 'Yes' }, { text: 'No' }]] });
  await exchange(scene, ann, bot.id, 'Yes', 'You said Yes');
  const removed = await resultOf(service.app(ann, 'GET', path));
  expect(removed.message?.reply_keyboard).not.toHaveProperty('keyboard');
}

async function administration(scene: Scene): Promise<void> {
  const { ann, ben, group, service } = scene;
  const order = (text: string, reply: string) => exchange(scene, ann, group, text, reply);
  const { message_id } = await say(scene, ann, group, 'ben comes');
  await resultOf(service.app(ben, 'POST', `/api/chats/${group}/join`));
  await answered(scene, ann, group, message_id, ({ text }) => text === 'Welcome, ben');
  await order(`/mute ${ben.id}`, 'muted');
  const refused = await service.app(ben, 'POST', `/api/chats/${group}/messages`, { text: 'x' });
  expect(refused.body.description).toBe('Bad Request: not enough rights to send text messages to the chat');
  await order(`/promote ${ben.id}`, 'pins: true');
  await order('/name Village', 'Village, About Village, photo, /name Village');
  await order(`/ban ${ann.id}`, "Bad Request: can't remove chat owner");
  await order(`/ban ${ben.id}`, 'kicked');
  expect((await service.app(ben, 'POST', `/api/chats/${group}/join`)).status).toBe(403);
}

const poll = (answersVotes: boolean) => async (scene: Scene) => {
  const { ann, bot, service } = scene;
  const asked = await say(scene, ann, bot.id, '/poll');
  const { message_id } = await answered(scene, ann, bot.id, asked.message_id, (message) => message.poll);
  const vote = { option_ids: [1] };
  await resultOf(service.app(ann, 'POST', `/api/chats/${bot.id}/messages/${message_id}/poll`, vote));
  if (answersVotes) await answered(scene, ann, bot.id, message_id, ({ text }) => text === 'voted 1');
  const reply = { reply_to_message_id: message_id };
  await exchange(scene, ann, bot.id, '/close', 'closed: tea 0, milk 1', reply);
};

async function inline(scene: Scene): Promise<void> {
  const { ann, bot, group, service } = scene;
  const at = `/api/chats/${group}`;
  const query = { bot_id: bot.id, query: 'times' };
  const answer = await resultOf(service.app(ann, 'POST', `${at}/inline_query`, query, 1));
  expect(answer.results.map(({ title }: Json) => title)).toEqual(['times 1', 'times 2']);
  const before = await say(scene, ann, bot.id, 'now');
  const choice = { inline_query_id: answer.inline_query_id, result_id: '2' };
  const { message_id } = await resultOf(service.app(ann, 'POST', `${at}/inline_result`, choice));
  await answered(scene, ann, bot.id, before.message_id, ({ text }) => text === 'chose 2');
  await press(scene, group, message_id, 'add:0');
  await eventually(async () => expect(await shownText(scene, group, message_id)).toBe('count 1'));
}

export interface FeatureStep {
  readonly name: string;
  run(scene: Scene): Promise<void>;
}

/** `answersVotes` is false for libraries that do not know the update `poll_answer`. */
export const featureSteps = ({ answersVotes = true } = {}): readonly FeatureStep[] => [
  { name: 'talks with two people at once', run: conversation },
  { name: 'shows a menu that reacts to fast taps', run: menu },
  { name: 'sends and downloads files', run: media },
  { name: 'shows and removes a reply keyboard', run: replyKeyboard },
  { name: 'sends a poll and closes it', run: poll(answersVotes) },
  { name: 'answers inline queries and edits the chosen result', run: inline },
  { name: 'administers a group', run: administration },
];
