/** Creates test data for the gallery: people, bots, chats and posts that show every part of the pages. */
import sharp from 'sharp';
import { expect, vi } from 'vitest';
import { makeCertificate } from '../support/certificates.js';
import { ageQueue } from '../support/queues.js';
import { type Receiver, startReceiver } from '../support/receivers.js';
import { itemsOf, resultOf, type Service, type TestBot, type TestUser } from '../support/service.js';

export interface Gallery {
  readonly alice: TestUser;
  readonly bob: TestUser;
  readonly newcomer: TestUser;
  readonly guide: TestBot;
  /** A bot with inline mode, whose answer to the query `walk` is cached. */
  readonly quiet: TestBot;
  readonly fresh: TestBot;
  readonly group: number;
  readonly channel: number;
  /** The external id of the newest post of the channel. */
  readonly post: string;
  close(): Promise<void>;
}

/** A landscape drawn in the given hue, so that pictures differ. */
export function picture(hue: number, width = 900, height = 600): Promise<Buffer> {
  const far = `hsl(${hue} 45% 62%)`;
  const near = `hsl(${hue + 18} 42% 38%)`;
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 900 600" preserveAspectRatio="xMidYMid slice">
    <defs><linearGradient id="sky" x2="0" y2="1"><stop stop-color="hsl(${hue + 40} 70% 78%)"/><stop offset="1" stop-color="hsl(${hue} 65% 88%)"/></linearGradient></defs>
    <rect width="900" height="600" fill="url(#sky)"/><circle cx="640" cy="170" r="62" fill="hsl(${hue + 60} 85% 88%)"/>
    <path d="M0 420L170 250 320 380 500 190 690 390 800 300 900 390V600H0z" fill="${far}"/>
    <path d="M0 500L220 380 420 490 640 400 900 500V600H0z" fill="${near}"/></svg>`;
  return sharp(Buffer.from(svg)).jpeg({ quality: 82 }).toBuffer();
}

/** Calls a bot method with files. */
export async function upload(
  service: Service,
  bot: TestBot,
  method: string,
  fields: Record<string, unknown>,
  files: Record<string, { bytes: Buffer | string; name: string }>,
) {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields))
    form.set(name, typeof value === 'string' ? value : JSON.stringify(value));
  for (const [name, { bytes, name: file }] of Object.entries(files))
    form.set(name, new Blob([bytes as BlobPart]), file);
  const answer = await fetch(`${service.fronts[0].url}/bot${bot.token}/${method}`, {
    method: 'POST',
    body: form,
  });
  const { ok, result, description } = (await answer.json()) as {
    ok: boolean;
    result: { message_id: number };
    description?: string;
  };
  if (!ok) throw new Error(`${method}: ${description}`);
  return result;
}

async function drawBot(service: Service, owner: TestUser, bot: TestBot): Promise<void> {
  const put = async (what: string, bytes: Buffer) => {
    const answer = await fetch(`${service.fronts[0].url}/api/me/bots/${bot.id}/${what}`, {
      method: 'PUT',
      headers: { authorization: `Bearer ${owner.token}`, 'content-type': 'image/jpeg' },
      body: new Uint8Array(bytes),
    });
    if (!answer.ok) throw new Error(`${what}: ${answer.status}`);
  };
  await put('avatar', await picture(200, 512, 512));
  await put('start_picture', await picture(24, 640, 360));
  await resultOf(
    service.app(owner, 'PATCH', `/api/me/bots/${bot.id}`, {
      name: { '': 'Mountain Guide', ru: 'Горный проводник', hy: 'Լեռնային ուղեկցորդ' },
      description: {
        '': 'Plans walks for the weekend: routes, weather on the pass, and who brings the tea.',
        ru: 'Планирует прогулки на выходные: маршруты, погода на перевале и кто несёт чай.',
        hy: 'Պլանավորում է շաբաթավերջի արշավները՝ երթուղիներ, եղանակը լեռնանցքում և ով է բերում թեյը։',
      },
      short_description: {
        '': 'Routes, weather and company for the weekend.',
        ru: 'Маршруты, погода и компания на выходные.',
        hy: 'Երթուղիներ, եղանակ և ընկերակցություն շաբաթավերջին։',
      },
    }),
  );
  await resultOf(
    service.bot(bot, 'setMyCommands', {
      commands: [
        { command: 'start', description: 'Begin' },
        { command: 'route', description: 'Suggest a route for today' },
        { command: 'weather', description: 'Weather on the pass' },
        { command: 'company', description: 'Who comes along' },
      ],
    }),
  );
}

async function fillDirect(service: Service, { alice, guide, group }: Gallery): Promise<void> {
  const say = (text: string, more: object = {}) =>
    resultOf(service.app(alice, 'POST', `/api/chats/${guide.id}/messages`, { text, ...more }));
  const send = (method: string, params: object) =>
    resultOf(service.bot(guide, method, { chat_id: alice.id, ...params }));
  const one = {
    message_id: 0,
    ...(await send('sendMessage', {
      text: '<b>Welcome!</b> I plan walks. Try /route, or tell me how long you want to be out: <i>two hours</i>, <code>6h</code>, a whole day.\n<blockquote>The best walk is the one that ends with tea.</blockquote>',
      parse_mode: 'HTML',
    })),
  };
  const asked = await say('Something with a view, not more than six hours please');
  await upload(
    service,
    guide,
    'sendPhoto',
    {
      chat_id: alice.id,
      caption: 'The ridge above the lake: 11 km, 640 m up. The last bus goes at 18:40.',
      reply_parameters: { message_id: asked.message_id },
    },
    { photo: { bytes: await picture(205), name: 'ridge.jpg' } },
  );
  const hues = [24, 95, 160, 265];
  const album = await Promise.all(hues.map((hue) => picture(hue, 700, 700)));
  await upload(
    service,
    guide,
    'sendMediaGroup',
    {
      chat_id: alice.id,
      media: hues.map((_, i) => ({
        type: 'photo',
        media: `attach://p${i}`,
        ...(i === 0 ? { caption: 'From last year, hour by hour' } : {}),
      })),
    },
    Object.fromEntries(album.map((bytes, i) => [`p${i}`, { bytes, name: `p${i}.jpg` }])),
  );
  await upload(
    service,
    guide,
    'sendDocument',
    { chat_id: alice.id, caption: 'For your watch' },
    { document: { bytes: '<gpx/>'.repeat(3_000), name: 'ridge-above-the-lake.gpx' } },
  );
  await send('sendPhoto', { photo: 'https://pictures.example.com/lake.jpg' });
  await say('Lovely. Is it open after all that rain?', { reply_to_message_id: one.message_id });
  await send('sendMessage', {
    text: 'Password of the hut: ||marmot||. See https://example.com/huts or write to hut@example.com',
    protect_content: true,
    parse_mode: 'MarkdownV2',
  }).catch(() =>
    send('sendMessage', {
      text: 'Password of the hut: <tg-spoiler>marmot</tg-spoiler>. Do not pass it on, @keeper asks for that.',
      parse_mode: 'HTML',
      protect_content: true,
    }),
  );
  const his = await itemsOf(service.app(alice, 'GET', `/api/chats/${group}/messages?limit=100`));
  const invitation = his.find(({ text }: { text?: string }) => text?.startsWith('I bring'));
  const to = `/api/chats/${guide.id}/forward`;
  await resultOf(
    service.app(alice, 'POST', to, { from_chat_id: group, message_ids: [invitation.message_id] }),
  );
  const plan = await send('sendMessage', { text: 'Meeting at nine, at the fountain' });
  await send('editMessageText', {
    message_id: plan.message_id,
    text: 'Meeting at half past eight, at the fountain. Bring water: the spring is dry.',
  });
  await send('pinChatMessage', { message_id: plan.message_id });
  await send('sendMessage', {
    text: 'Will you come?',
    reply_markup: {
      inline_keyboard: [
        [
          { text: 'Yes, with tea', callback_data: 'yes' },
          { text: 'Only to the hut', callback_data: 'hut' },
        ],
        [{ text: 'Show the way on a map', url: 'https://example.com/map' }],
        [{ text: 'Ask me again tomorrow, when the forecast is there', callback_data: 'later' }],
      ],
    },
  });
}

async function fillShared(service: Service, { alice, bob, guide, group, channel }: Gallery): Promise<void> {
  const in_ = (who: TestUser, chat: number, text: string, more: object = {}) =>
    resultOf(service.app(who, 'POST', `/api/chats/${chat}/messages`, { text, ...more }));
  const changed = { title: 'Saturday hikes', description: 'Every Saturday, from the station at eight.' };
  await resultOf(service.app(alice, 'PATCH', `/api/chats/${group}`, changed));
  const first = await in_(alice, group, 'Who comes on Saturday?');
  await in_(bob, group, 'I bring bread, cheese and the big thermos');
  await in_(bob, group, 'And my sister, if she gets the day off', { reply_to_message_id: first.message_id });
  await resultOf(
    service.bot(guide, 'sendMessage', {
      chat_id: group,
      text: 'Saturday: 14 °C, wind from the west, no rain before evening.',
    }),
  );
  const code = 'const hours = kilometres / 4 + metresUp / 400; // for a group with children and heavy bags';
  await in_(alice, group, `How long we walk:\n${code}`, {
    entities: [
      { type: 'bold', offset: 0, length: 8 },
      { type: 'pre', offset: 18, length: code.length, language: 'typescript' },
    ],
  });
  await in_(alice, group, 'Տեսնենք լեռներում! Увидимся в горах! ⛰️');
  await resultOf(service.app(alice, 'POST', `/api/chats/${group}/pin`, { message_id: first.message_id }));
  await in_(
    alice,
    channel,
    'The pass is open again. Take care below the north face: there is still ice in the shade until noon.',
  );
  await upload(
    service,
    guide,
    'sendPhoto',
    { chat_id: channel, caption: 'First snow, seen from the hut this morning' },
    { photo: { bytes: await picture(215), name: 'snow.jpg' } },
  );
  await in_(alice, channel, 'Перевал закрыт до среды. Լեռնանցքը փակ է մինչև չորեքշաբթի։', {});
  const posts: Array<{ id: number }> = await itemsOf(
    service.app(alice, 'GET', `/api/chats/${channel}/posts`),
  );
  const react = (who: TestUser, post: number | undefined, emoji: string) =>
    resultOf(service.app(who, 'POST', `/api/posts/${post}/reactions`, { emoji }));
  for (const { id } of posts) await resultOf(service.app(bob, 'POST', `/api/posts/${id}/like`));
  for (const emoji of ['❤', '🔥', '😍']) await react(alice, posts[1]?.id, emoji);
  for (const emoji of ['🔥', '⛄', '🎉', '👏']) await react(bob, posts[1]?.id, emoji);
  await react(alice, posts[2]?.id, '🙏');
}

async function fillWebhook(service: Service, { alice, guide }: Gallery): Promise<Receiver> {
  const certificate = makeCertificate({ names: ['localhost'], addresses: ['127.0.0.1'] });
  const receiver = await startReceiver(certificate, (_, response, body) => {
    const fine = String(body).includes('first things');
    response.writeHead(fine ? 200 : 503, fine ? {} : { 'retry-after': '3000' });
    response.end(fine ? '{"ok":true}' : '{"error":"The database of the bot is away"}');
  });
  await ageQueue(service, guide.id);
  await resultOf(
    service.bot(guide, 'setWebhook', {
      url: `https://127.0.0.1:${receiver.port}/hooks/mountain-guide`,
      certificate: certificate.cert,
    }),
  );
  const to = { url: `https://127.0.0.1:${receiver.port}/hooks/walks`, certificate: certificate.cert };
  const presses = { name: 'bookings', allowed_updates: ['callback_query'], ...to };
  await resultOf(service.bot(guide, 'setWebhookRoute', presses));
  await resultOf(service.bot(guide, 'setWebhookRoute', { name: 'trial', percent: 1, ...to }));
  const orders = { name: 'orders', commands: ['book', 'cancel', 'invoice'], ...to };
  await resultOf(service.bot(guide, 'setWebhookRoute', orders));
  const count = async (what: string) =>
    (await resultOf(service.app(alice, 'GET', `/api/me/bots/${guide.id}/webhook/${what}`))).items.length;
  const patience = { timeout: 60_000, interval: 100 };
  await vi.waitFor(async () => expect(await count('dead_letters')).toBeGreaterThan(0), patience);
  for (const text of ['first things first', 'Are you there?'])
    await resultOf(service.app(alice, 'POST', `/api/chats/${guide.id}/messages`, { text }));
  await vi.waitFor(async () => expect(await count('deliveries')).toBeGreaterThanOrEqual(2), patience);
  const replay = { from_update_id: 0, route: 'orders' };
  await resultOf(service.app(alice, 'POST', `/api/me/bots/${guide.id}/webhook/replays`, replay));
  return receiver;
}

/**
 * Sends an inline query to the bot `quiet` from the chat with the bot `guide`, so that the answer of `quiet` is cached.
 */
async function fillInline(service: Service, { alice, guide, quiet }: Gallery): Promise<void> {
  const mode = { enabled: true, placeholder: 'Search walks', feedback: true };
  await resultOf(service.app(alice, 'PUT', `/api/me/bots/${quiet.id}/inline_mode`, mode));
  const [started] = await resultOf(service.bot(quiet, 'getUpdates', { offset: -1 }));
  const asking = service.app(alice, 'POST', `/api/chats/${guide.id}/inline_query`, {
    ...{ bot_id: quiet.id, query: 'walk' },
  });
  const after = { offset: started.update_id + 1, timeout: 50 };
  const [{ inline_query }] = await resultOf(service.bot(quiet, 'getUpdates', after));
  const walk = (id: string, title: string, description: string) => ({
    ...{ type: 'article', id, title, description, input_message_content: { message_text: title } },
  });
  const results = [
    walk('1', 'Around the lake', '11 km, 640 m up, five hours. Boots, water and a map.'),
    walk('2', 'To the hut', 'Two hours with tea at the end'),
    {
      ...{ type: 'photo', id: '3', title: 'The ridge in autumn', description: 'A picture' },
      photo_url: 'https://pictures.example.com/ridge.jpg',
    },
    { type: 'venue', id: '4', latitude: 40.2, longitude: 44.5, title: 'Station', address: 'Platform 2' },
    { type: 'contact', id: '5', phone_number: '+374 10 000000', first_name: 'Mountain rescue' },
    walk('6', 'Տեսարան դեպի լեռները', 'Երեք ժամ, 7 կմ'),
    walk('7', 'Прогулка по ущелью', 'Для начинающих, с детьми, без подъёмов'),
  ];
  await resultOf(
    service.bot(quiet, 'answerInlineQuery', {
      ...{ inline_query_id: inline_query.id, results, cache_time: 86_400 },
      button: { text: 'Choose a region', start_parameter: 'region' },
    }),
  );
  await resultOf(asking);
}

/** Gives Alice a pinned chat. Also gives her an archived chat with an unread message. */
async function fillScheduled(service: Service, { alice, channel }: Gallery): Promise<void> {
  const day = Math.floor(Date.now() / 86_400_000) * 86_400;
  for (const [days, text] of [
    [3, 'The pass opens on Friday. The first bus leaves at seven.'],
    [9, 'Ախթալայի երթուղին նորից բաց է։ Маршрут на Ахталу снова открыт.'],
  ] as const)
    await resultOf(
      service.app(alice, 'POST', `/api/chats/${channel}/scheduled_posts`, {
        text,
        publish_at: day + days * 86_400,
      }),
    );
  const schedule = async (days: number, kind: string, bytes: Buffer, name: string, text: string) => {
    const form = new FormData();
    form.set('text', text);
    form.set('publish_at', `${day + days * 86_400}`);
    form.set(kind, new Blob([new Uint8Array(bytes)]), name);
    const url = `${service.fronts[0]?.url}/api/chats/${channel}/scheduled_posts`;
    const headers = { authorization: `Bearer ${alice.token}` };
    await (await fetch(url, { method: 'POST', headers, body: form })).json();
  };
  await schedule(5, 'photo', await picture(205), 'pass.jpg', 'The pass this morning.');
  await schedule(7, 'document', Buffer.alloc(48_000, 'gpx'), 'a-long-walk-along-the-ridge.gpx', '');
}

async function fillPlaces(service: Service, { alice, bob, channel }: Gallery): Promise<void> {
  const old = await service.newGroup(alice, 'Hikes of last year', [bob]);
  await resultOf(service.app(alice, 'PUT', `/api/chats/${channel}/list_pin`));
  await resultOf(service.app(alice, 'PUT', `/api/chats/${old}/mute`));
  await resultOf(service.app(alice, 'PUT', `/api/chats/${old}/archive`));
  const text = 'Does anybody have the pictures?';
  await resultOf(service.app(bob, 'POST', `/api/chats/${old}/messages`, { text }));
}

/** The pages to which messages link. */
const pageTexts: Readonly<Record<string, readonly [title: string, description: string, site: string]>> = {
  '/ridge': [
    'The ridge above the lake in six hours, with a view of both valleys',
    'Eleven kilometres and 640 metres up. Where the path is steep, where it is wet after rain, and where there is tea.',
    'Walks & Views',
  ],
  '/short': ['Timetable of bus 12', '', ''],
};

/** Returns the page of a path, or null if there is none. */
export function pageOf(path: string): string | null {
  const [title, description, site] = pageTexts[path] ?? [];
  if (title === undefined) return null;
  const name = site && `<meta property="og:site_name" content="${site.replace('&', '&amp;')}">`;
  return `<title>${title}</title><meta name="description" content="${description}">${name}`;
}

const codes = {
  python: `# The height above the lake
def climbed(points: list[float]) -> float:
    """Sum of all rises, in metres."""
    return sum(max(0.0, b - a) for a, b in zip(points, points[1:]))

print(f"{climbed([412.5, 1052, 980]):.0f} m", None, True)`,
  ts: `interface Walk { readonly km: number; name?: string }

// Longest first
export const sorted = (walks: Walk[]) => walks.toSorted((a, b) => b.km - a.km);
const best: Walk = { km: 11.4, name: \`ridge \${1 + 1}\` };
if (!/^ridge/.test(best.name ?? '')) throw new Error("no 'ridge'");`,
  html: `<!doctype html>
<a class="map" href="/map?at=46.5">The map</a> <!-- later -->`,
  diff: `- bus at 18:10
+ bus at 18:40`,
  sql: `select name, count(*) from walks where km > 6.5 group by 1; -- by name`,
  '': 'no language, no colour = "1"',
};

/**
 * Sends code in several languages and links to pages. Both sides write, because the messages of the two sides have
 * different colours.
 */
async function fillTexts(service: Service, { alice, quiet }: Gallery, pages: string): Promise<void> {
  const to = { chat_id: alice.id };
  const send = (params: object) => resultOf(service.bot(quiet, 'sendMessage', { ...to, ...params }));
  const say = (params: object) =>
    resultOf(service.app(alice, 'POST', `/api/chats/${quiet.id}/messages`, params));
  for (const write of [send, say])
    for (const [language, text] of Object.entries(codes))
      await write({ text, entities: [{ type: 'pre', offset: 0, length: text.length, language }] });
  await send({ text: `Have you seen this? ${pages}/ridge` });
  await say({ text: `And the bus ${pages}/short` });
  await send({ text: `This page is gone: ${pages}/gone`, link_preview_options: { show_above_text: true } });
  await say({ text: `${pages}/ridge` });
}

export async function fillGallery(service: Service, pages: string): Promise<Gallery> {
  const create = async (username: string, first_name: string, last_name?: string): Promise<TestUser> => {
    const body = { username, first_name, ...(last_name ? { last_name } : {}) };
    const { user, token } = await resultOf(
      service.app({ token: service.adminToken }, 'POST', '/api/admin/users', body),
    );
    service.issued(token);
    return { id: user.id, username, first_name, token };
  };
  const [alice, bob, newcomer] = await Promise.all([
    create('alice', 'Alice', 'Archer'),
    create('bob', 'Bob', 'Baghdasaryan'),
    create('newcomer', 'Nora'),
  ]);
  const guide = await service.newBot(alice, 'guide');
  const [quiet, fresh] = [await service.newBot(alice, 'quiet'), await service.newBot(bob, 'fresh')];
  await resultOf(
    service.app(alice, 'PATCH', `/api/me/bots/${quiet.id}`, {
      name: { '': 'Reminders of the whole family' },
    }),
  );
  await Promise.all([drawBot(service, alice, guide), drawBot(service, bob, fresh)]);
  const group = await service.newGroup(alice, 'Hiking on Saturday', [bob, guide]);
  const about = { type: 'channel', title: 'Mountain News', username: 'mountain_news' };
  const { id: channel } = await resultOf(service.app(alice, 'POST', '/api/chats', about));
  await resultOf(service.app(bob, 'POST', `/api/chats/${channel}/join`));
  await resultOf(
    service.app(alice, 'PUT', `/api/chats/${channel}/members/${guide.id}`, {
      status: 'administrator',
      rights: { can_post_messages: true },
    }),
  );
  await service.openChat(alice, guide);
  await service.openChat(alice, quiet);
  const parts = { alice, bob, newcomer, guide, quiet, fresh, group, channel };
  const gallery = { ...parts, post: '', close: async () => {} };
  await fillShared(service, gallery);
  const receiver = await fillWebhook(service, gallery);
  await fillDirect(service, gallery);
  await fillInline(service, gallery);
  await fillPlaces(service, gallery);
  await fillScheduled(service, gallery);
  await fillTexts(service, gallery, pages);
  // Alice has not read these messages, and her chat list shows an unread count.
  for (const text of ['Water the plants', 'Call grandmother', 'Bread, milk, and the paper'])
    await resultOf(service.bot(quiet, 'sendMessage', { chat_id: alice.id, text }));
  const [post] = await itemsOf(service.app(alice, 'GET', `/api/chats/${channel}/posts?limit=1`));
  return { ...parts, post: post.external_id, close: () => receiver.close() };
}
