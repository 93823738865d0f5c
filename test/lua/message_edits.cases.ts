import type { Redis } from 'ioredis';
import { expect } from 'vitest';
import { limits } from '../../src/limits.js';
import {
  type ContentObject,
  messageFlags,
  messageKinds,
  pack,
  packContent,
  unpackMessage,
} from '../../src/store/core/codec.js';
import { type ChatRef, chatText } from '../../src/store/core/keys.js';
import type { Case } from './cases.js';
import {
  asDirect,
  asGroup,
  at,
  deleted,
  full,
  groupOfBots,
  groupReady,
  id,
  inQueue,
  member,
  old,
  open,
  outboxFull,
} from './message_world.js';
import {
  base,
  bot,
  direct,
  group,
  issued,
  keyboard,
  keys,
  partitionOf,
  record,
  type Seed,
  seeds,
  user,
} from './world.js';

const onceKey = (chat: ChatRef) => keys.request(partitionOf(chat), 'once.s.1');
const media = { type: 'photo', id: 'f', unique: 'u', url: 'https://example.org/a.jpg' } as const;

const editArgs = (chat: ChatRef, editor: number, what: string, messageId: number) => ({
  edit: pack([chatText(chat), `${messageId}`, `${editor}`, what]),
  token: 'T',
  content: pack({ text: 'new' }),
  markup: Buffer.alloc(0),
});

interface LiveEdit {
  readonly seed: Parameters<typeof record>[0];
  readonly answer: Case['answer'];
  /** The expected content object of the message after the edit. */
  readonly shown?: ContentObject;
}

/**
 * Makes the cases of live locations, which are the same for both edit scripts. An edit with empty content stops the
 * live location.
 */
function liveEdits(make: (what: string, given: LiveEdit, content: Buffer) => Case): Case[] {
  const day = 86_400;
  const now = Math.floor(Date.now() / 1000);
  const place = { type: 'location', latitude: 1, longitude: 2.5 };
  const at = (object: ContentObject, date = now): LiveEdit['seed'] => ({ date, content: { object } });
  const live = (period: number, until: number) => at({ ...place, live: [period, until] });
  const to = { type: 'location', latitude: 3, longitude: 4 };
  const stop = Buffer.alloc(0);
  const moved = (period?: number) =>
    packContent({ object: period === undefined ? to : { ...to, live: [period, 0] } });
  const forever = limits.live_period_s_forever;
  return [
    make(
      'moves a live location and keeps its period',
      { seed: live(600, now + 600), answer: ['ok'], shown: { ...to, live: [600, now + 600] } },
      moved(),
    ),
    make(
      'changes the period of a live location',
      { seed: live(600, now + 600), answer: ['ok'], shown: { ...to, live: [700, now + 700] } },
      moved(700),
    ),
    make(
      'removes the end of a live location',
      { seed: live(600, now + 600), answer: ['ok'], shown: { ...to, live: [forever, now + forever] } },
      moved(forever),
    ),
    make(
      'stops a live location',
      { seed: live(600, now + 600), answer: ['ok'], shown: { ...place, live: [600, 0] } },
      stop,
    ),
    make(
      'moves a live location that is older than 48 hours',
      {
        seed: at({ ...place, live: [forever, now + forever] }, old),
        answer: ['ok'],
        shown: { ...to, live: [forever, now + forever] },
      },
      moved(),
    ),
    make(
      'refuses to move an ended location',
      { seed: live(60, now - 1), answer: ['cant_be_edited'] },
      moved(),
    ),
    make('refuses to stop an ended location', { seed: live(60, 0), answer: ['cant_be_edited'] }, stop),
    make('refuses to move a location that is not live', { seed: at(place), answer: ['no_live'] }, moved()),
    make(
      'refuses to move a text',
      { seed: { kind: messageKinds.text, content: { text: 'x' } }, answer: ['no_live'] },
      moved(),
    ),
    make(
      'refuses to extend a live location by more than a day',
      { seed: live(600, now + 600), answer: ['wrong_period'] },
      moved(601 + day),
    ),
    make(
      'refuses an end of a live location in more than 90 days',
      { seed: live(600, now + 91 * day), answer: ['wrong_period'] },
      moved(800),
    ),
  ];
}

function edits(script: 'messages/edit_direct' | 'messages/edit_shared'): Case[] {
  const chat = script === 'messages/edit_direct' ? direct : group;
  const isDirect = chat === direct;
  // The user edits the message, so that the bot of a direct chat gets an update.
  const own = { sender: user };
  const base0 = isDirect ? [open(chat), seeds.chat(chat), seeds.queue()] : groupReady;
  const changes = [
    ...(isDirect ? [...asDirect, ...inQueue] : [...asGroup, 'outbox']),
    `msg:${chatText(chat)}:7`,
  ];
  const edit = (
    what: string,
    more: Partial<Case> & Pick<Case, 'answer'>,
    kind = 'text',
    messageId = id,
  ): Case => ({
    ...{ script, what, keys: at(chat) },
    args: { ...editArgs(chat, user, kind, messageId), from: pack({ id: user }) },
    ...more,
  });
  const on = (given = {}) => [...base0, seeds.message(chat, id, { ...own, ...given })];
  const here = { type: 'location', latitude: 1, longitude: 2.5 };
  const period = limits.live_period_s_forever;
  const live = {
    kind: messageKinds.object,
    content: { object: { ...here, live: [period, period] as const } },
  };
  const there = { ...here, longitude: 3 };
  const place = packContent({ object: there });
  return [
    edit('replaces the text', {
      seeds: on({ editedAt: Date.now() - 1_500 }),
      answer: ['ok'],
      changes,
      async after(client) {
        const stored = unpackMessage((await client.getBuffer(keys.message(chat, id))) as Buffer);
        expect(stored).toMatchObject({ version: base + 1, content: { text: 'new' }, sender: user });
        expect(Math.abs(stored.editedAt - Date.now())).toBeLessThan(30_000);
        expect((await client.xrange(keys.journal(partitionOf(chat)), '-', '+'))[0]?.[0]).toBe(
          `${base + 1}-0`,
        );
      },
    }),
    edit(
      'replaces the keyboard of a forward',
      { seeds: on({ flags: messageFlags.forwarded, markup: keyboard('x') }), answer: ['ok'], changes },
      'markup',
    ),
    {
      ...edit('replaces the text of an inline message for its bot', {
        seeds: [
          ...(isDirect ? base0 : [open(chat), seeds.chat(chat, { b: `${bot}` })]),
          seeds.message(chat, id, {
            ...own,
            flags: messageFlags.inline,
            origin: { via: { id: 77, n: 'V' } },
          }),
        ],
        answer: ['ok'],
        changes,
      }),
      args: {
        ...editArgs(chat, 77, 'text', id),
        edit: pack([chatText(chat), `${id}`, '77', 'text', true]),
        from: isDirect ? '' : pack({ id: 77 }),
      },
    },
    {
      ...edit('refuses an inline edit by a bot that is not the bot of the message', {
        seeds: on({ flags: messageFlags.inline, origin: { via: { id: 77, n: 'V' } } }),
        answer: ['cant_be_edited'],
      }),
      args: {
        ...editArgs(chat, 78, 'text', id),
        edit: pack([chatText(chat), `${id}`, '78', 'text', true]),
        from: isDirect ? '' : pack({ id: 78 }),
      },
    },
    edit('refuses an edit of an inline message by its sender', {
      seeds: on({ flags: messageFlags.inline, origin: { via: { id: 77, n: 'V' } } }),
      answer: ['cant_be_edited'],
    }),
    edit('answers an already applied request again', {
      seeds: [...on(), seeds.text(keys.request(partitionOf(chat), 'r'), '1')],
      answer: ['ok'],
      changes: [],
    }),
    ...(isDirect
      ? [
          edit('refuses a user who blocked the bot', {
            seeds: [...on(), seeds.chat(chat, { t: 'blocked' })],
            answer: ['blocked'],
          }),
          {
            ...edit('refuses to move the live location of a bot that is blocked', {
              seeds: [...on(live), seeds.chat(chat, { t: 'blocked' })],
              answer: ['blocked'],
            }),
            args: { ...editArgs(chat, bot, 'location', id), content: place, from: '' },
          },
          {
            ...edit('moves the live location of an inline message if the bot of the chat is blocked', {
              seeds: [
                ...on({ ...live, flags: messageFlags.inline, origin: { via: { id: 77, n: 'V' } } }),
                seeds.chat(chat, { t: 'blocked' }),
              ],
              answer: ['ok'],
              changes,
            }),
            args: {
              edit: pack([chatText(chat), `${id}`, '77', 'location', true]),
              ...{ token: 'T', content: place, markup: Buffer.alloc(0), from: '' },
            },
          },
        ]
      : [
          {
            ...edit('refuses media of a kind that a restricted member may not send', {
              seeds: [...on(), member('restricted', { can_send_videos: true })],
              answer: ['not_permitted', 'photo'],
            }),
            args: {
              ...editArgs(chat, user, 'media', id),
              ...{ content: Buffer.concat([pack({}), pack(media)]), from: pack({ id: user }) },
            },
          },
        ]),
    edit('reports a deleted message for an already applied request', {
      seeds: [...on(deleted), seeds.text(keys.request(partitionOf(chat), 'r'), '1')],
      answer: ['not_found'],
    }),
    {
      ...edit('stores the edited record with an idempotency key', { seeds: on(), answer: ['ok'] }),
      keys: { ...at(chat), request: onceKey(chat) },
      changes: changes.map((name) => (name === 'req:r' ? 'req:once.s.1' : name)),
      async after(client: Redis) {
        const kept = (await client.getBuffer(onceKey(chat))) as Buffer;
        const made = (await client.getBuffer(keys.message(chat, id))) as Buffer;
        expect(kept.equals(Buffer.concat([Buffer.from(`${chatText(chat)} ${id}\n`), made]))).toBe(true);
        expect(limits.idempotency_ttl_ms - (await client.pttl(onceKey(chat)))).toBeLessThan(60_000);
      },
    },
    {
      ...edit(
        'returns the stored record of an applied key, even if the message is cold or not the caller’s',
        {
          seeds: [
            ...base0.slice(0, 2),
            seeds.text(
              onceKey(chat),
              Buffer.concat([
                Buffer.from(`${chatText(chat)} ${id}\n`),
                record({ content: { text: 'made' } }),
              ]),
            ),
          ],
          answer: ['ok', expect.stringContaining('made')],
          changes: [],
        },
      ),
      keys: { ...at(chat), request: onceKey(chat) },
    },
    {
      ...edit('refuses a different run id', { seeds: on(), answer: ['stale_run'] }),
      args: { ...editArgs(chat, user, 'text', id), from: '', run: 'other' },
    },
    edit('refuses while the journal is full', { seeds: [...on(), ...full(chat)], answer: ['journal_full'] }),
    edit('reports a cold chat as missing', { seeds: [open(chat)], answer: ['chat_missing', issued('T')] }),
    edit('reports a cold message as missing', { seeds: base0, answer: ['message_missing', issued('T')] }),
    edit('refuses an id that was not given out', { seeds: on(), answer: ['not_found'] }, 'text', 8),
    edit('refuses a deleted message', { seeds: on(deleted), answer: ['not_found'] }),
    edit('refuses a message of another sender', { seeds: on({ sender: 77 }), answer: ['cant_be_edited'] }),
    edit('refuses a service message', {
      seeds: on({ kind: messageKinds.service }),
      answer: ['cant_be_edited'],
    }),
    edit('refuses the text of a forward', {
      seeds: on({ flags: messageFlags.forwarded }),
      answer: ['cant_be_edited'],
    }),
    edit('refuses a message older than 48 hours', { seeds: on({ date: old }), answer: ['cant_be_edited'] }),
    edit('refuses a text for a message without text', {
      seeds: on({ kind: 3 as never }),
      answer: ['no_text'],
    }),
    edit('refuses a caption for a text message', { seeds: on(), answer: ['no_caption'] }, 'caption'),
    edit('refuses media for a text message', { seeds: on(), answer: ['no_media'] }, 'media'),
    edit(
      'changes a caption without changing a byte of the media',
      {
        seeds: on({ kind: messageKinds.media, content: { text: 'old', media } }),
        answer: ['ok'],
        changes,
        async after(client) {
          const stored = unpackMessage((await client.getBuffer(keys.message(chat, id))) as Buffer);
          expect(stored.content).toEqual({ text: 'new', media });
        },
      },
      'caption',
    ),
    edit(
      'refuses an unchanged caption',
      { seeds: on({ kind: messageKinds.media, content: { text: 'new', media } }), answer: ['not_modified'] },
      'caption',
    ),
    edit('refuses an unchanged text', { seeds: on({ content: { text: 'new' } }), answer: ['not_modified'] }),
    ...liveEdits((what, given, content) => ({
      ...edit(what, {
        seeds: on({ kind: messageKinds.object, ...given.seed }),
        answer: given.answer,
        ...(given.answer[0] === 'ok' ? { changes } : {}),
        ...(given.shown === undefined
          ? {}
          : {
              async after(client: Redis) {
                const stored = unpackMessage((await client.getBuffer(keys.message(chat, id))) as Buffer);
                expect(stored.content).toEqual({ object: given.shown });
              },
            }),
      }),
      args: { ...editArgs(chat, user, 'location', id), content, from: pack({ id: user }) },
    })),
    edit('refuses an edit less than 1 s after another one', {
      seeds: on({ editedAt: Date.now() + 3_600_000 }),
      answer: ['too_often'],
    }),
    edit('edits twice within a second after a press', {
      seeds: [...on({ editedAt: Date.now() + 3_600_000 }), seeds.text(keys.grantedEdits(chat, id), '2')],
      answer: ['ok'],
      changes: [...changes, `granted_edits:${chatText(chat)}:${id}`],
      after: async (client) => expect(await client.get(keys.grantedEdits(chat, id))).toBe('1'),
    }),
    edit('refuses an edit less than 1 s after another one if the granted edits are used', {
      seeds: [...on({ editedAt: Date.now() + 3_600_000 }), seeds.text(keys.grantedEdits(chat, id), '0')],
      answer: ['too_often'],
    }),
    edit('keeps a granted edit that was not needed', {
      seeds: [...on(), seeds.text(keys.grantedEdits(chat, id), '1')],
      answer: ['ok'],
      changes,
      after: async (client) => expect(await client.get(keys.grantedEdits(chat, id))).toBe('1'),
    }),
    edit('reports an unchanged text even within a second', {
      seeds: on({ content: { text: 'new' }, editedAt: Date.now() }),
      answer: ['not_modified'],
    }),
    ...(isDirect
      ? [
          edit('reports a missing queue', {
            seeds: [open(chat), seeds.chat(chat), seeds.message(chat, id, own)],
            answer: ['queue_missing'],
          }),
        ]
      : [
          edit('reports a cold member as missing', {
            seeds: [open(chat), seeds.chat(chat), seeds.message(chat, id, own)],
            answer: ['member_missing', issued('T')],
          }),
          edit('edits a bot’s own message without updates to the other bots of the group', {
            seeds: [...groupOfBots, seeds.message(chat, id, own)],
            answer: ['ok'],
            changes: [...asGroup, `msg:${chatText(chat)}:7`],
          }),
          edit('sends the update of a person’s edit of a bot’s message only to that bot', {
            seeds: [
              open(chat),
              seeds.chat(chat, { b: `${bot},78` }),
              member('administrator', { can_edit_messages: true }),
              seeds.message(chat, id, { sender: bot }),
            ],
            answer: ['ok'],
            changes,
            async after(client: Redis) {
              const [entry] = await client.xrange(keys.outbox(partitionOf(chat)), '-', '+');
              expect(entry?.[1].slice(0, 2)).toEqual(['b', `${bot}`]);
            },
          }),
          edit('refuses an edit in a closed chat of two people', {
            seeds: [...on(), seeds.chat(chat, { t: 'closed' }), member()],
            answer: ['chat_closed'],
          }),
          edit('refuses a former member', {
            seeds: [...on(), member('kicked')],
            answer: ['not_member', 'group'],
          }),
          edit('refuses while the outbox is full', { seeds: [...on(), outboxFull], answer: ['outbox_full'] }),
        ]),
  ];
}

/** The owner of the bot that made the pending edits. */
const payer = 55;

/** A pending edit in Redis. Its text is `newer`. */
const pendingEdit = (
  chat: ChatRef,
  given: { version?: number; token?: string; due?: number; owner?: number } = {},
): Seed[] => {
  const place = `${chatText(chat)}:${id}`;
  const { version = base, token = 'P', due = 5, owner = payer } = given;
  return [
    (client) =>
      client.eval(
        `local packed = cmsgpack.pack({ARGV[2], ARGV[3], tonumber(ARGV[4]), ARGV[5], '', '{"id":1}', false, ARGV[7]})
         redis.call('HSET', KEYS[1], ARGV[1], packed, 'owner:' .. ARGV[7], #packed + ARGV[6], 'all', #packed + ARGV[6])`,
        1,
        keys.pendingEdits(partitionOf(chat)),
        ...[place, token, `${user}`, version, pack({ text: 'newer' }), limits.pending_edit_overhead_bytes],
        owner,
      ),
    (client) => client.zadd(keys.editsDue(partitionOf(chat)), due, place),
  ];
};

/**
 * The cases of edits with `coalesce`, of pending edits that are due, and of other edits made while an edit is pending.
 */
function coalesced(script: 'messages/edit_direct' | 'messages/edit_shared'): Case[] {
  const chat = script === 'messages/edit_direct' ? direct : group;
  const isDirect = chat === direct;
  const place = `${chatText(chat)}:${id}`;
  const at0 = isDirect ? [open(chat), seeds.chat(chat)] : groupOfBots;
  const applied = [...(isDirect ? asDirect : asGroup), `msg:${place}`];
  const waiting = ['edits_due', 'pending_edits'];
  const from = isDirect ? '' : pack({ id: user });
  const edit = (
    what: string,
    mode: readonly unknown[],
    more: Partial<Case> & Pick<Case, 'answer'>,
    kind = 'text',
  ): Case => ({
    ...{ script, what, keys: at(chat) },
    args: {
      ...editArgs(chat, user, kind, id),
      ...{ from, edit: pack([chatText(chat), `${id}`, `${user}`, kind, false, ...mode]) },
    },
    ...more,
  });
  const on = (given = {}): Seed[] => [...at0, seeds.message(chat, id, { sender: user, ...given })];
  const early = (given = {}): Seed[] => on({ editedAt: Date.now() + 3_600_000, ...given });
  const late = (): Seed[] => on({ editedAt: Date.now() - 1_500 });
  const coalesce = ['coalesce', '{"id":1}', `${payer}`];
  const shows = (text: string) => async (client: Redis) =>
    expect(unpackMessage((await client.getBuffer(keys.message(chat, id))) as Buffer).content.text).toBe(text);
  const remembered = seeds.text(keys.request(partitionOf(chat), 'r'), '1');
  const sizes = (bytes: Record<string, number>): Seed =>
    seeds.hash(keys.pendingEdits(partitionOf(chat)), bytes);
  const wait = expect.toSatisfy((ms) => Number(ms) > 3_000_000);
  /**
   * In these cases, a call has made an edit pending, and is repeated as a durable call with the same idempotency key. A
   * durable call has no edit mode.
   */
  const durableRepeats = (): Case[] => {
    const repeated = (what: string, more: Partial<Case> & Pick<Case, 'answer'>): Case => ({
      ...edit(what, [], {
        ...more,
        seeds: [
          ...(more.seeds ?? []),
          seeds.text(
            onceKey(chat),
            Buffer.concat([
              Buffer.from(`${chatText(chat)} ${id} pending\n`),
              record({ content: { text: 'new' }, sender: user }),
            ]),
          ),
        ],
      }),
      keys: { ...at(chat), request: onceKey(chat) },
    });
    return [
      repeated('refuses to confirm an edit that is still pending', {
        seeds: [...early(), ...pendingEdit(chat)],
        answer: ['too_often'],
      }),
      repeated('makes an edit that was pending again if it was not applied', {
        seeds: late(),
        answer: ['ok', expect.stringContaining('new')],
        changes: [...applied.filter((key) => key !== 'req:r'), 'req:once.s.1'],
        after: shows('new'),
      }),
      repeated('confirms an edit that was pending if the message has a later version', {
        seeds: on({ version: base + 1, content: { text: 'later' } }),
        answer: ['ok', expect.stringContaining('new')],
        changes: [],
        after: shows('later'),
      }),
    ];
  };
  return [
    edit('applies a coalesced edit at once after a second', coalesce, {
      ...{ seeds: late(), answer: ['ok', expect.stringContaining('new')], changes: applied },
      after: shows('new'),
    }),
    edit('makes a coalesced edit within a second pending', coalesce, {
      seeds: early(),
      answer: ['ok', expect.stringContaining('new'), expect.anything(), '', 0, wait],
      changes: [...waiting, 'req:r'],
      async after(client) {
        await shows('old')(client);
        const all = await client.hgetall(keys.pendingEdits(partitionOf(chat)));
        expect(Object.keys(all).sort()).toEqual([place, `owner:${payer}`, 'all'].sort());
        expect(all[`owner:${payer}`]).toBe(all.all);
      },
    }),
    edit('replaces the pending edit and its size', coalesce, {
      seeds: [...early(), ...pendingEdit(chat)],
      answer: ['ok', expect.stringContaining('new'), expect.anything(), '', 0, wait],
      changes: [...waiting, 'req:r'],
      async after(client) {
        const all = await client.hgetallBuffer(keys.pendingEdits(partitionOf(chat)));
        expect(Number(all.all)).toBe((all[place] as Buffer).length + limits.pending_edit_overhead_bytes);
      },
    }),
    edit('compares a coalesced edit with the pending one', coalesce, {
      seeds: [...early({ content: { text: 'new' } }), ...pendingEdit(chat)],
      answer: ['ok'],
      changes: [...waiting, 'req:r'],
    }),
    {
      ...edit('refuses a coalesced edit with the pending text', coalesce, {
        seeds: [...early(), ...pendingEdit(chat)],
        answer: ['not_modified'],
      }),
      args: {
        ...editArgs(chat, user, 'text', id),
        content: pack({ text: 'newer' }),
        ...{ from, edit: pack([chatText(chat), `${id}`, `${user}`, 'text', false, ...coalesce]) },
      },
    },
    edit('answers a repeated coalesced edit that is still pending', coalesce, {
      seeds: [...early(), ...pendingEdit(chat), remembered],
      answer: ['ok', expect.stringContaining('newer'), expect.anything(), '', 0, 0],
      changes: [],
    }),
    edit('answers a repeated coalesced edit that is applied', coalesce, {
      seeds: [...early(), remembered],
      answer: ['ok', expect.stringContaining('old')],
      changes: [],
      after: shows('old'),
    }),
    {
      ...edit('answers a pending edit under an idempotency key again', coalesce, {
        seeds: [
          ...early(),
          ...pendingEdit(chat),
          seeds.text(
            onceKey(chat),
            Buffer.concat([
              Buffer.from(`${chatText(chat)} ${id}\n`),
              record({ content: { text: 'newer' }, sender: user }),
            ]),
          ),
        ],
        answer: ['ok', expect.stringContaining('newer'), expect.anything(), '', 0, 0],
        changes: [],
      }),
      keys: { ...at(chat), request: onceKey(chat) },
    },
    ...durableRepeats(),
    edit('uses an edit that a press granted for a coalesced edit', coalesce, {
      seeds: [...early(), ...pendingEdit(chat), seeds.text(keys.grantedEdits(chat, id), '1')],
      answer: ['ok'],
      changes: [...applied, ...waiting, `granted_edits:${place}`],
      after: shows('new'),
    }),
    edit('refuses a coalesced edit if the bots of the owner have too many pending edits', coalesce, {
      seeds: [...early(), sizes({ [`owner:${payer}`]: limits.pending_edits_bytes_per_owner_max - 1_000 })],
      answer: ['too_often'],
    }),
    edit('refuses a too large coalesced edit in place of the edit of another owner', coalesce, {
      seeds: [
        ...early(),
        ...pendingEdit(chat, { owner: 77 }),
        sizes({ [`owner:${payer}`]: limits.pending_edits_bytes_per_owner_max - 1_000 }),
      ],
      answer: ['too_often'],
    }),
    edit('refuses a coalesced edit if the partition has too many pending edits', coalesce, {
      seeds: [...early(), sizes({ all: limits.pending_edits_bytes_max - 1_000 })],
      answer: ['too_often'],
    }),
    edit('applies a pending edit that is due', ['due', 'P'], {
      seeds: [...late(), ...pendingEdit(chat)],
      answer: ['ok', expect.stringContaining('newer')],
      changes: [...applied, ...waiting],
      async after(client) {
        await shows('newer')(client);
        expect(await client.exists(keys.pendingEdits(partitionOf(chat)))).toBe(0);
        expect(await client.exists(keys.editsDue(partitionOf(chat)))).toBe(0);
      },
    }),
    edit('does not apply a pending edit that replaced the edit that was due', ['due', 'Q'], {
      seeds: [...late(), ...pendingEdit(chat)],
      answer: ['not_pending'],
    }),
    edit('does not apply a pending edit of an older version', ['due', 'P'], {
      seeds: [...late(), ...pendingEdit(chat, { version: base - 1 })],
      answer: ['not_pending'],
    }),
    edit('does not apply a pending edit to a deleted message', ['due', 'P'], {
      seeds: [...on(deleted), ...pendingEdit(chat)],
      answer: ['not_pending'],
    }),
    {
      ...edit(
        'applies a pending text together with a new keyboard',
        [],
        {
          seeds: [...late(), ...pendingEdit(chat)],
          answer: ['ok', expect.stringContaining('newer')],
          changes: [...applied, ...waiting],
          after: shows('newer'),
        },
        'markup',
      ),
      args: {
        ...editArgs(chat, user, 'markup', id),
        ...{
          from,
          edit: pack([chatText(chat), `${id}`, `${user}`, 'markup', false]),
          markup: pack(keyboard('x')),
        },
      },
    },
    edit(
      'compares a new keyboard with the pending one',
      [],
      {
        seeds: [...early({ markup: keyboard('x') }), ...pendingEdit(chat)],
        answer: ['not_modified'],
      },
      'markup',
    ),
    edit('refuses a coalesced edit while the journal is full', coalesce, {
      seeds: [...early(), ...full(chat)],
      answer: ['journal_full'],
    }),
    edit('replaces the text by a normal edit while another edit is pending', [], {
      seeds: [...late(), ...pendingEdit(chat)],
      answer: ['ok', expect.stringContaining('new')],
      changes: applied,
      after: shows('new'),
    }),
  ];
}

const dueKeys = {
  ...{ meta: keys.meta(partitionOf(group)), pending: keys.pendingEdits(partitionOf(group)) },
  edits_due: keys.editsDue(partitionOf(group)),
};
const groupPlace = `${chatText(group)}:${id}`;
const dueCases: readonly Case[] = [
  {
    ...{ script: 'messages/due_edits', what: 'takes a due edit for a second', keys: dueKeys },
    args: { limit: 10, gone: [] },
    seeds: [open(group), ...pendingEdit(group)],
    answer: ['ok', [groupPlace, 'P', `${user}`, '0', '{"id":1}'].map((text) => Buffer.from(text)), 1_000],
    changes: ['edits_due'],
  },
  {
    ...{ script: 'messages/due_edits', what: 'reports when the next edit is due', keys: dueKeys },
    args: { limit: 10, gone: [] },
    seeds: [open(group), ...pendingEdit(group, { due: Date.now() + 3_600_000 })],
    answer: ['ok', [], expect.toSatisfy((ms) => Number(ms) > 3_000_000)],
    changes: [],
  },
  {
    ...{ script: 'messages/due_edits', what: 'removes an edit that cannot be applied', keys: dueKeys },
    args: { limit: 10, gone: [groupPlace, 'P'] },
    seeds: [open(group), ...pendingEdit(group)],
    ...{ answer: ['ok', []], changes: ['edits_due', 'pending_edits'] },
  },
  {
    ...{ script: 'messages/due_edits', what: 'keeps a newer edit of the same message', keys: dueKeys },
    args: { limit: 10, gone: [groupPlace, 'former'] },
    seeds: [open(group), ...pendingEdit(group, { due: Date.now() + 3_600_000 })],
    ...{ answer: ['ok', []], changes: [] },
  },
  {
    ...{ script: 'messages/due_edits', what: 'refuses a different run id', keys: dueKeys },
    args: { limit: 10, gone: [], run: 'other' },
    seeds: [open(group), ...pendingEdit(group)],
    answer: ['stale_run'],
  },
];

export const editCases: readonly Case[] = [
  ...coalesced('messages/edit_direct'),
  ...coalesced('messages/edit_shared'),
  ...dueCases,
  ...edits('messages/edit_direct'),
  ...edits('messages/edit_shared'),
];
