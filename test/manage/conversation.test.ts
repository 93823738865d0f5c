/**
 * Tests conversations with the management bot in all languages. Like the application, the tests use HTTP and the event
 * stream.
 */
import { Bot, GrammyError } from 'grammy';
import { expect, test } from 'vitest';
import { fill, type TextKey, texts, type Values } from '../../src/manage/texts.js';
import { findSecrets } from '../faults/secrets.js';
import { itemsOf, resultOf, type Service } from '../support/service.js';
import { onSharedService } from '../support/shared.js';
import { labels, newTalker, type Talker, tokenIn } from './talker.js';

let service: Service;
onSharedService((running) => {
  service = running;
});

const tokens: string[] = [];

const inWords =
  (language: 'ru' | 'hy' | 'en') =>
  (key: TextKey, values: Values = {}) =>
    fill(texts[language][key], values);

async function create(talker: Talker, name: string, username: string): Promise<string> {
  await talker.say('/newbot');
  await talker.say(name);
  const token = tokenIn(await talker.say(username));
  tokens.push(token);
  return token;
}

/**
 * Starts a grammY bot that echoes messages. `failed` resolves to the error that ended the bot. `polls` contains its
 * getUpdates calls.
 */
async function run(token: string) {
  const bot = new Bot(token, { client: { apiRoot: service.fronts[0].url } });
  const polls: Array<{ readonly sentAt: number; code?: number }> = [];
  bot.api.config.use(async (next, method, payload, signal) => {
    if (method !== 'getUpdates') return next(method, payload, signal);
    const poll: (typeof polls)[number] = { sentAt: performance.now() };
    polls.push(poll);
    const answer = await next(method, payload, signal);
    poll.code = answer.ok ? 200 : answer.error_code;
    return answer;
  });
  bot.on('message:text', (ctx) => ctx.reply(`echo: ${ctx.message.text}`));
  let failed: Promise<unknown> = Promise.resolve();
  await new Promise<void>((resolve) => {
    failed = bot.start({ onStart: () => resolve() }).then(
      () => undefined,
      (error: unknown) => error,
    );
  });
  return { bot, failed, polls };
}

test.each(['ru', 'hy'] as const)(
  'people create, use, transfer and delete a bot in a conversation in %s',
  { timeout: 90_000 },
  async (language) => {
    const said = inWords(language);
    const owner = await newTalker(service, `anna${language}`, language);
    const heir = await newTalker(service, `boris${language}`, language);
    const username = `echo_${owner.user.id}_bot`;

    expect((await owner.say('/newbot')).text).toBe(said('ask_new_name'));
    expect((await owner.say('Эхо')).text).toBe(said('ask_new_username', { name: 'Эхо' }));
    expect((await owner.say('not one')).text).toBe(said('username_invalid'));
    expect((await owner.say('petrelbot')).text).toBe(said('username_taken', { username: 'petrelbot' }));
    const made = await owner.say(`@${username}`);
    const first = tokenIn(made);
    tokens.push(first);
    expect(made.text).toBe(said('created', { name: 'Эхо', username, token: first }));

    const lastMessage = async (who: Talker) =>
      (await resultOf(service.app(who.user, 'GET', '/api/chats'))).items.find(
        ({ id }: { id: number }) => id === who.bot,
      ).last_message;
    expect((await lastMessage(owner)).text).not.toContain(first);
    // The owner replies to the message that contains the token. The reply quotes this message, so the owner sees the
    // token, also after an edit of the reply.
    const path = `/api/chats/${owner.bot}/messages`;
    const before = owner.events.events.length;
    const thanks = { text: 'thanks', reply_to_message_id: made.message_id };
    const answer = await resultOf(service.app(owner.user, 'POST', path, thanks));
    expect(tokenIn(answer.reply_to_message)).toBe(first);
    const change = service.app(owner.user, 'PATCH', `${path}/${answer.message_id}`, { text: 'thank you' });
    expect(tokenIn((await resultOf(change)).reply_to_message)).toBe(first);
    expect((await owner.received(before)).text).toBe(said('unknown'));
    const page = await resultOf(service.app(owner.user, 'GET', '/api/bots/petrelbot'));
    expect(page.commands[0]).toEqual({ command: 'newbot', description: said('command_newbot') });

    const running = await run(first);
    await resultOf(service.app(owner.user, 'POST', `/api/bots/${username}/start`, {}));
    const echoed = owner.events.events.length;
    await resultOf(
      service.app(owner.user, 'POST', `/api/chats/${Number(first.split(':')[0])}/messages`, { text: 'one' }),
    );
    await owner.events.received(
      ({ event, data }) => event === 'message' && data.text === 'echo: one',
      echoed,
    );

    // Presses "My bots", the bot, "Token", and "Issue new token". The open poll of the running bot then ends with 401.
    const list = await owner.say('/mybots');
    expect(labels(list)).toEqual([`@${username}`]);
    const menu = (await owner.press(list, `@${username}`)).last;
    expect(menu.text).toBe(said('bot_page', { name: 'Эхо', username }));
    const tokenPage = (await owner.press(menu, said('button_token'))).last;
    const question = (await owner.press(tokenPage, said('button_issue'))).last;
    expect(question.text).toBe(said('issue_ask', { username }));
    // Earlier polls have been answered, so one poll is open and waits for updates.
    await expect.poll(() => running.polls.at(-1)?.code).toBeUndefined();
    const pressedAt = performance.now();
    const issued = (await owner.press(question, said('button_issue_yes'))).last;
    const second = tokenIn(issued);
    tokens.push(second);
    expect(second).not.toBe(first);
    expect(issued.text).toBe(said('issued', { username, token: second }));
    const end = await running.failed;
    expect(end).toBeInstanceOf(GrammyError);
    expect(end).toMatchObject({ method: 'getUpdates', error_code: 401 });
    // When the button was pressed, one poll was open. This poll ended with 401, and the bot's next call gets 401 too.
    const open = running.polls.at(-1);
    expect(open?.code).toBe(401);
    expect(open?.sentAt).toBeLessThan(pressedAt);
    const next = running.bot.api.sendMessage(owner.user.id, 'still here');
    await expect(next).rejects.toMatchObject({ method: 'sendMessage', error_code: 401 });
    expect((await service.bot(first, 'getMe')).status).toBe(401);
    expect(await resultOf(service.bot(second, 'getMe'))).toMatchObject({ username });
    const [, , ...older] = await owner.history();
    expect(
      tokenIn(older.find(({ text }) => text === said('created', { name: 'Эхо', username, token: second }))),
    ).toBe(second);

    expect((await owner.say('/transfer')).text).toBe(said('ask_transfer', { username }));
    expect((await owner.say('nobody_at_all')).text).toBe(said('transfer_unknown'));
    expect((await owner.say(owner.user.username)).text).toBe(said('transfer_self'));
    await owner.say('/transfer');
    const recipient = heir.user.username;
    const consequences = await owner.say(`@${recipient}`);
    expect(consequences.text).toBe(said('transfer_ask', { username, recipient }));
    const given = await owner.press(consequences, said('button_transfer_yes', { recipient }));
    expect(given.last.text).toBe(said('transferred', { username, recipient }));
    expect((await service.bot(second, 'getMe')).status).toBe(401);

    // In old messages, the former owner sees a placeholder instead of the token. Old buttons have no effect for the
    // former owner.
    const past = await owner.history();
    expect(
      past.filter(({ text }) => text.includes(texts[language].token_hidden)).length,
    ).toBeGreaterThanOrEqual(2);
    expect(JSON.stringify(past)).not.toMatch(/\d+:A[\w-]{34}/);
    const stale = await owner.press(made, said('button_edit'));
    expect(stale).toEqual({ alert: said('not_yours'), shown: [], last: undefined });

    expect((await owner.say('/mybots')).text).toBe(said('list_empty'));
    expect(await itemsOf(service.app(owner.user, 'GET', '/api/me/bots'))).toEqual([]);
    const notice = said('notice_transferred_to_you', { from: `@${owner.user.username}`, username });
    await heir.events.received(({ event, data }) => event === 'message' && data.text === notice);
    expect(labels(await heir.say('/mybots'))).toEqual([`@${username}`]);
    const ofToken = await heir.say('/token');
    const shown = await heir.press(ofToken, said('button_show_token'));
    const third = tokenIn(shown.last);
    tokens.push(third);
    expect(await resultOf(service.bot(third, 'getMe'))).toMatchObject({ username, first_name: 'Эхо' });

    const doubt = await heir.say('/deletebot');
    expect(doubt.text).toBe(said('delete_ask', { username }));
    const gone = await heir.press(doubt, said('button_delete_yes'));
    expect(gone.last.text).toBe(said('deleted', { username }));
    expect((await service.bot(third, 'getMe')).status).toBe(401);
    expect((await heir.say('/mybots')).text).toBe(said('list_empty'));
    owner.close();
    heir.close();
  },
);

test('a conversation that sets texts or write access has the same effect as the API', async () => {
  const said = inWords('en');
  const carol = await newTalker(service, 'carol', 'en');
  const token = await create(carol, 'Carol helper', 'carol_helper_bot');
  const bot = Number(token.split(':')[0]);
  const settings = async () => resultOf(service.app(carol.user, 'GET', `/api/me/bots/${bot}`));

  const languages = await carol.say('/setname');
  const asked = (await carol.press(languages, 'Русский')).last;
  expect(asked.text).toContain('Русский');
  expect((await carol.say('x'.repeat(65))).text).toBe(said('name_too_long'));
  expect((await carol.say('Помощник')).text).toBe(
    said('text_set', { username: 'carol_helper_bot', language: 'Русский' }),
  );
  await carol.press(await carol.say('/setdescription'), said('button_default_language'));
  await carol.say('Helps Carol.');
  expect(await settings()).toMatchObject({
    texts: { name: { ru: 'Помощник' }, description: { '': 'Helps Carol.' } },
  });
  const present = await carol.press(await carol.say('/setname'), '✓ Русский');
  await carol.press(present.last, said('button_remove_text'));
  expect((await settings()).texts.name).toEqual({});

  await carol.press(await carol.say('/setabouttext'), 'Հայերեն');
  expect((await carol.say('x'.repeat(121))).text).toBe(said('short_description_too_long'));
  await carol.say('Կարոլի օգնականը');
  expect((await settings()).texts.short_description).toEqual({ hy: 'Կարոլի օգնականը' });

  const dave = await newTalker(service, 'dave');
  const writers = await carol.say('/setwriters');
  await carol.press(writers, said('button_writers_selected'));
  expect((await carol.say('dave nobody_at_all')).text).toBe(said('writers_unknown', { username: 'dave' }));
  expect((await carol.say(`@${dave.user.username}`)).text).toContain(`@${dave.user.username}`);
  expect(await settings()).toMatchObject({
    write_access: { policy: 'selected', usernames: [dave.user.username] },
  });
  await carol.press(writers, said('button_writers_owner'));
  expect(await settings()).toMatchObject({ write_access: { policy: 'owner' } });
  carol.close();
  dave.close();
});

test('the management bot answers unexpected messages, and a person can cancel a dialogue', async () => {
  const said = inWords('en');
  const erin = await newTalker(service, 'erin');
  expect((await erin.say('hello')).text).toBe(said('unknown'));
  expect((await erin.say('/cancel')).text).toBe(said('nothing_to_cancel'));
  expect((await erin.say('/mybots')).text).toBe(said('list_empty'));
  await erin.say('/newbot');
  expect((await erin.say('/cancel')).text).toBe(said('cancelled'));
  expect((await erin.say('A name')).text).toBe(said('unknown'));
  const asked = await erin.say('/newbot');
  const stopped = await erin.press(asked, said('button_cancel'));
  expect(stopped.last.text).toBe(said('cancelled'));
  expect((await erin.say('A name')).text).toBe(said('unknown'));
  expect((await erin.say('/help@another_bot')).text).toBe(said('unknown'));
  expect((await erin.say('/help@petrelbot')).text).toContain('/newbot');
  erin.close();
});

test('the management bot leaves every group, and nobody can own it or take its username', async () => {
  const frank = await newTalker(service, 'frank');
  expect((await service.app(frank.user, 'GET', `/api/me/bots/${frank.bot}/token`)).status).toBe(404);
  expect((await service.app(frank.user, 'POST', `/api/me/bots/${frank.bot}/regenerate_token`)).status).toBe(
    404,
  );
  const taken = { username: 'PetrelBot', name: 'Mine' };
  expect((await service.app(frank.user, 'POST', '/api/me/bots', taken)).body.description).toBe(
    'Bad Request: username is already taken',
  );
  const page = await resultOf(service.app(frank.user, 'GET', '/api/bots/petrelbot'));
  expect(page.description).toBe(texts.en.bot_description);
  const group = await service.newGroup(frank.user, 'Friends', [{ id: frank.bot }]);
  await expect
    .poll(async () => resultOf(service.app(frank.user, 'GET', `/api/chats/${group}/members`)))
    .toMatchObject({ items: [{ user: { id: frank.user.id } }] });
  frank.close();
});

test('no token of a conversation is stored in Redis, in Postgres or in a log', async () => {
  expect(tokens.length).toBeGreaterThan(6);
  const secrets = tokens.flatMap((token) => [token, token.slice(token.indexOf(':') + 1)]);
  const { found, searched } = await findSecrets(service, secrets, []);
  expect(found).toEqual([]);
  expect(searched.keys).toBeGreaterThan(50);
});

test('the owner turns inline mode on and off, sets its placeholder and turns on feedback', async () => {
  const said = inWords('en');
  const owner = await newTalker(service, 'iris', 'en');
  const username = `finder_${owner.user.id}_bot`;
  const token = await create(owner, 'Finder', username);
  const isInline = async () => (await resultOf(service.bot(token, 'getMe'))).supports_inline_queries;
  const shown = (placeholder: string, feedback: TextKey) =>
    said('inline_on', { username, placeholder, feedback: said(feedback) });

  const off = await owner.say('/setinline');
  expect(off.text).toBe(said('inline_off', { username }));
  expect(await isInline()).toBe(false);
  const on = (await owner.press(off, said('button_inline_on'))).last;
  expect(on.text).toBe(shown(said('nothing_set'), 'said_no'));
  expect(await isInline()).toBe(true);

  const question = (await owner.press(on, said('button_inline_hint'))).last;
  expect(question.text).toBe(said('ask_placeholder', { username }));
  expect((await owner.say('x'.repeat(65))).text).toBe(said('placeholder_too_long'));
  const hinted = await owner.say('Search  cats');
  expect(hinted.text).toBe(shown('Search cats', 'said_no'));
  const told = (await owner.press(hinted, said('button_feedback_on'))).last;
  expect(told.text).toBe(shown('Search cats', 'said_yes'));
  const named = await resultOf(service.app(owner.user, 'GET', `/api/names/${username}`));
  expect(named.inline_placeholder).toBe('Search cats');

  const page = await owner.say('/setinlinefeedback');
  expect(page.text).toBe(shown('Search cats', 'said_yes'));
  const quiet = (await owner.press(page, said('button_feedback_off'))).last;
  expect(quiet.text).toBe(shown('Search cats', 'said_no'));
  const ended = (await owner.press(quiet, said('button_inline_off'))).last;
  expect(ended.text).toBe(said('inline_off', { username }));
  expect(await isInline()).toBe(false);
  owner.close();
});
