/**
 * Manages copies of control records in Redis. Postgres is authoritative. If a copy is missing, it is created with a
 * fill ticket. After each commit, the process that made the change refreshes the copy by version. If that process dies,
 * the sweep does so. `test/models/fill_tickets.pml` models this protocol. In the model, `token` and `read_under`
 * together are the ticket of `#readCopy`, and `version` is the version of the `Image`.
 */

import { loadUser } from '../../postgres/accounts/users.js';
import {
  type BotRow,
  type DefaultRights,
  loadBot,
  loadBots,
  loadCommands,
  loadDescriptions,
} from '../../postgres/bots/bots.js';
import type { InlineMode } from '../../postgres/bots/inline_mode.js';
import type { BotPictures, StoredPicture } from '../../postgres/bots/pictures.js';
import { loadMember, loadUserChats, type MemberRow, type MemberStatus } from '../../postgres/chats/chats.js';
import { loadDetails } from '../../postgres/chats/details.js';
import { loadAdministrators } from '../../postgres/chats/members.js';
import type { Sql } from '../../postgres/sql.js';
import { loadWebhook, type WebhookRow } from '../../postgres/webhooks/webhooks.js';
import type { Texts } from '../../rules/identity_texts.js';
import type { MenuButton } from '../../rules/menu_button.js';
import type { RetryPolicy } from '../../rules/retry_policy.js';
import { pack, unpack } from './codec.js';
import type { StoreContext } from './context.js';
import { groupBy, piecesOf } from './groups.js';
import type { Keys } from './keys.js';

export type { DefaultRights, InlineMode };

interface Image {
  readonly version: number;
  readonly fields: readonly unknown[];
}

interface Kind<T> {
  key(keys: Keys, id: number, other: number): string;
  load(sql: Sql, id: number, other: number): Promise<Image | null>;
  /** Loads several records at once. Defined only for kinds whose records often change together. */
  loadMany?(sql: Sql, ids: readonly number[]): Promise<ReadonlyMap<number, Image>>;
  /** Decodes the fields of a copy. `nowMs` is the Unix time by the clock of Redis. */
  read(fields: readonly unknown[], id: number, nowMs: number): T;
}

export interface Bot {
  readonly id: number;
  /** The owner's id. 0 for a deleted bot and for the management bot. */
  readonly owner: number;
  readonly username: string;
  /** The bot's default name, or the name from the bot's creation if no default is set. */
  readonly name: string;
  /** The lookup value of the valid token in base64. Empty while the token is blocked. */
  readonly token: string;
  readonly names: Texts;
  /** Why the bot's token is not accepted. A deleted bot keeps its record, because its messages are still shown. */
  readonly state?: 'suspended' | 'deleted' | undefined;
  /** The inline mode. Absent if the mode is off. */
  readonly inline?: InlineMode | undefined;
  /**
   * Data that API methods derive from this record. It is dropped together with the cached record. It is stored here
   * because a lookup in a separate map would cost a CPU cache miss if there are many bots.
   */
  prepared?: unknown;
}

/** The fields of a bot that are shown only on the bot's pages. */
export interface Descriptions {
  readonly description: Texts;
  readonly shortDescription: Texts;
  readonly pictures: BotPictures;
  readonly menuButton: MenuButton | null;
  /** The administrator rights that the bot asks for. */
  readonly defaultRights: DefaultRights;
}

export interface User {
  readonly id: number;
  readonly externalId: string;
  readonly firstName: string;
  readonly lastName: string | null;
  readonly username: string | null;
  readonly languageCode: string | null;
  /** The lookup values of the person's valid tokens, in base64. */
  readonly tokens: readonly string[];
  /** Who may add the person to groups and channels without an invitation. */
  readonly addToGroups: 'everyone' | 'shared_chats' | 'nobody';
  /** Who may start a chat with the person. */
  readonly startChats: 'everyone' | 'shared_chats' | 'nobody';
  /** The sizes of the avatar, largest first. Empty if there is no avatar. */
  readonly avatar: readonly StoredPicture[];
  readonly state?: 'suspended' | undefined;
}

export interface Member {
  readonly status: MemberStatus | 'none';
  readonly rights: Readonly<Record<string, boolean>>;
  readonly isBot: boolean;
  /** The Unix time in seconds at which a ban or restriction ends. 0 if it never ends. */
  readonly until_date: number;
  readonly custom_title: string;
  /** Who made this member an administrator. 0 if the member is not an administrator. */
  readonly promoted_by: number;
}

export interface Administrator extends Member {
  readonly id: number;
}

export interface ChatDetails {
  readonly description: string;
  /** The sizes of the photo, largest first. Empty if there is no photo. */
  readonly photo: readonly StoredPicture[];
  /** The permissions that differ from the defaults, separated by commas. */
  readonly permissions: string;
  /** The codes of primary invite links, keyed by the id of their creator. */
  readonly links: Readonly<Record<string, string>>;
}

export interface UserChats {
  readonly direct: readonly number[];
  readonly shared: readonly number[];
}

/** A webhook whose secrets are still encrypted. Each secret is decrypted only where it is needed. */
export interface SealedWebhook {
  readonly version: number;
  /** The encrypted URL, or null while the bot polls. */
  readonly url: Buffer | null;
  readonly secret: Buffer | null;
  readonly certificate: string | null;
  readonly maxConnections: number;
  readonly address: string | null;
  readonly signing: Buffer;
  readonly former: Buffer | null;
  /** The Unix time in ms until which the former signing secret is valid. Null if there is no former signing secret. */
  readonly formerUntil: number | null;
  readonly retry: RetryPolicy | null;
  /** The encrypted routes, or null for a bot that never had routes. */
  readonly routes: Buffer | null;
}

export type Commands = Readonly<
  Record<string, ReadonlyArray<{ readonly command: string; readonly description: string }>>
>;

const deletedName = 'Deleted bot';

export function botOf(row: BotRow): Bot {
  const { id, username, name, names, suspended, deleted } = row;
  if (deleted)
    return { id, owner: 0, username: '', name: deletedName, token: '', names: {}, state: 'deleted' };
  // The management bot has no owner and no token. It gets the owner 0 and the lookup value '', which no person and no
  // token has.
  const [owner, token] = [row.owner_id ?? 0, row.token ?? ''];
  const { inline_placeholder: placeholder, inline_feedback: feedback } = row;
  const inline = placeholder === null ? undefined : { placeholder, feedback };
  return { id, owner, username, name, token, names, state: suspended ? 'suspended' : undefined, inline };
}

function botImage(row: BotRow): Image {
  const { owner, username, name, token, names, state, inline } = botOf(row);
  const kept = inline === undefined ? [] : [inline.placeholder, inline.feedback];
  return { version: row.version, fields: [owner, username, name, token, names, state ?? '', ...kept] };
}

/**
 * Returns whether a bot's token is blocked because it leaked. Deliveries then pause until the bot has a new token.
 * False for the management bot, which never has a token.
 */
export const isBlocked = (bot: Bot | null): boolean => bot !== null && bot.token === '' && bot.owner !== 0;

/**
 * Returns whether calls that the bot made earlier may still be applied. Returns false for a blocked bot, because
 * whoever stole its token may have made them.
 */
export const mayAct = (bot: Bot | null): bot is Bot =>
  bot !== null && !isBlocked(bot) && bot.state === undefined;

const bot: Kind<Bot> = {
  key: (keys, id) => keys.bot(id),
  async load(sql, id) {
    const row = await loadBot(sql, id);
    return row && botImage(row);
  },
  async loadMany(sql, ids) {
    return new Map((await loadBots(sql, ids)).map((row) => [row.id, botImage(row)]));
  },
  // Copies that older releases stored may lack `names`. Does not use a spread, because each bot would then get its own
  // hidden class in V8 (decision 0078), and each read of a bot's property would miss the CPU cache.
  read: ([owner, username, name, token, names = {}, state = '', placeholder, feedback], id) =>
    ({
      id,
      owner,
      username,
      name,
      token,
      names,
      state: state || undefined,
      inline: placeholder === undefined ? undefined : { placeholder, feedback },
      prepared: undefined,
    }) as Bot,
};

const user: Kind<User> = {
  key: (keys, id) => keys.user(id),
  async load(sql, id) {
    const row = await loadUser(sql, id);
    return (
      row && {
        version: row.version,
        fields: [
          ...[row.external_id, row.first_name, row.last_name, row.username, row.language_code, row.tokens],
          row.suspended ? 'suspended' : '',
          row.add_to_groups,
          row.start_chats,
          row.avatar ?? [],
        ],
      }
    );
  },
  // Copies that older releases stored may lack the last three fields.
  read: (
    [
      externalId,
      firstName,
      lastName,
      username,
      languageCode,
      tokens,
      state = '',
      addToGroups = 'everyone',
      startChats = 'everyone',
      avatar = [],
    ],
    id,
  ) =>
    ({
      id,
      externalId,
      firstName,
      lastName,
      username,
      languageCode,
      tokens,
      addToGroups,
      startChats,
      avatar,
      state: state || undefined,
    }) as User,
};

/**
 * For an ordinary member, stores only three fields, because each call that sends a message loads the sender's record.
 */
function memberFields({ status, rights, is_bot, until_date, custom_title, promoted_by }: MemberRow) {
  const more = [until_date ?? 0, custom_title ?? '', promoted_by ?? 0];
  return [status, rights, is_bot, ...(more.some(Boolean) ? more : [])];
}

/** Decodes a member. A ban or restriction that has ended is ignored. */
function readMember(fields: readonly unknown[], nowMs: number): Member {
  const [status, rights, isBot, until_date = 0, custom_title = '', promoted_by = 0] = fields as [
    ...[Member['status'], Member['rights'], boolean],
    ...[number?, string?, number?],
  ];
  if (until_date === 0 || until_date * 1_000 > nowMs)
    return { status, rights, isBot, until_date, custom_title, promoted_by };
  const after = { kicked: 'left', restricted: 'member' } as const;
  const now = after[status as keyof typeof after] ?? status;
  return { status: now, rights: {}, isBot, until_date: 0, custom_title, promoted_by };
}

/**
 * A member of a chat. A person who is not a member also gets a record, so that repeated checks do not query Postgres.
 */
const member: Kind<Member> = {
  key: (keys, chat, who) => keys.member(chat, who),
  async load(sql, chat, who) {
    const row = await loadMember(sql, chat, who);
    return row
      ? { version: row.version, fields: memberFields(row) }
      : { version: 0, fields: ['none', {}, false] };
  },
  read: (fields, _, nowMs) => readMember(fields, nowMs),
};

const administrators: Kind<readonly Administrator[]> = {
  key: (keys, chat) => keys.administrators(chat),
  async load(sql, chat) {
    const found = await loadAdministrators(sql, chat);
    const list = found?.rows.map((row) => [row.member_id, ...memberFields(row)]);
    return found && { version: found.version, fields: [list] };
  },
  read: ([list], _, nowMs) =>
    (list as Array<[number, ...unknown[]]>).map(([id, ...fields]) => ({ id, ...readMember(fields, nowMs) })),
};

const details: Kind<ChatDetails> = {
  key: (keys, chat) => keys.details(chat),
  async load(sql, chat) {
    const row = await loadDetails(sql, chat);
    return (
      row && { version: row.version, fields: [row.description, row.photo ?? [], row.permissions, row.links] }
    );
  },
  // Copies that older releases stored may lack `links`.
  read: ([description, photo, permissions, links = {}]) =>
    ({ description, photo, permissions, links }) as ChatDetails,
};

const chats: Kind<UserChats> = {
  key: (keys, id) => keys.memberships(id),
  async load(sql, id) {
    const row = await loadUserChats(sql, id);
    return row && { version: row.version, fields: [row.direct, row.shared] };
  },
  read: ([direct, shared]) => ({ direct, shared }) as UserChats,
};

const commands: Kind<Commands> = {
  key: (keys, id) => keys.commands(id),
  async load(sql, id) {
    const row = await loadCommands(sql, id);
    return row && { version: row.version, fields: [row.commands] };
  },
  read: ([value]) => value as Commands,
};

const descriptions: Kind<Descriptions> = {
  key: (keys, id) => keys.descriptions(id),
  async load(sql, id) {
    const row = await loadDescriptions(sql, id);
    return (
      row && {
        version: row.version,
        fields: [
          ...[row.descriptions, row.short_descriptions, row.pictures],
          ...[row.menu_button, row.default_rights],
        ],
      }
    );
  },
  // Copies that older releases stored may lack the last three fields.
  read: ([description, shortDescription, pictures = {}, menuButton = null, defaultRights = {}]) =>
    ({ description, shortDescription, pictures, menuButton, defaultRights }) as Descriptions,
};

/**
 * Returns the webhook settings from a Postgres row. Never reorder the fields: copies in Redis store only the values, in
 * this order.
 */
export const sealedOf = (row: WebhookRow): SealedWebhook => ({
  version: row.version,
  url: row.url_box,
  secret: row.secret_box,
  certificate: row.certificate,
  maxConnections: row.max_connections,
  address: row.ip_address,
  signing: row.signing_box,
  former: row.former_signing_box,
  formerUntil: row.former_until,
  retry: row.retry,
  routes: row.routes_box,
});

const webhook: Kind<SealedWebhook> = {
  key: (keys, id) => keys.webhook(id),
  async load(sql, id) {
    const row = await loadWebhook(sql, id);
    // A bot without a webhook also gets a copy, so that repeated checks do not query Postgres.
    if (!row) return { version: 0, fields: [0, null] };
    return { version: row.copy_version, fields: Object.values(sealedOf(row)) };
  },
  // Copies that older releases stored may lack the last two fields.
  read: ([
    version,
    url,
    secret,
    certificate,
    maxConnections,
    address,
    signing,
    former,
    formerUntil,
    retry = null,
    routes = null,
  ]) =>
    ({
      version,
      url,
      secret,
      certificate,
      maxConnections,
      address,
      signing,
      former,
      formerUntil,
      retry,
      routes,
    }) as SealedWebhook,
};

const kinds = { bot, user, member, administrators, details, chats, commands, descriptions, webhook };
export type ControlSubject = keyof typeof kinds;
type Value<S extends ControlSubject> = ReturnType<(typeof kinds)[S]['read']>;

/** How many copies are refreshed in parallel. */
const refreshesMax = 250;

/** The first two elements of a copy are its version and its incarnation. */
const headElements = 2;

const packFields = (fields: readonly unknown[]) => Buffer.concat(fields.map((field) => pack(field)));

export class ControlCopies {
  readonly #context: StoreContext;

  constructor(context: StoreContext) {
    this.#context = context;
  }

  #keysOf(kind: Kind<unknown>, id: number, other: number) {
    const { keys } = this.#context;
    const partition = keys.partitions.of(id);
    const record = kind.key(keys, id, other);
    return { partition, keys: { meta: keys.meta(partition), record, ticket: keys.ticket(record) } };
  }

  #readCopy(kind: Kind<unknown>, id: number, other: number) {
    const { scripts, hotTtlMs } = this.#context;
    const at = this.#keysOf(kind, id, other);
    return scripts.call('control/read', at.partition, at.keys, {
      token: this.#context.uniqueText(),
      ttl_ms: hotTtlMs,
    });
  }

  async #copy(
    kind: Kind<unknown>,
    id: number,
    other: number,
    row: Image,
    how: { readonly token: string; readonly refresh: boolean },
  ): Promise<void> {
    const { scripts, keys, hotTtlMs } = this.#context;
    const at = this.#keysOf(kind, id, other);
    await scripts.call(
      'control/write',
      at.partition,
      { ...at.keys, channel: keys.userChannel(id) },
      {
        ...how,
        version: row.version,
        fields: packFields(row.fields),
        count: row.fields.length + headElements,
        ttl_ms: hotTtlMs,
      },
    );
  }

  async #write(kind: Kind<unknown>, id: number, other: number, token: string, refresh: boolean) {
    const row = await kind.load(this.#context.db, id, other);
    if (row) await this.#copy(kind, id, other, row, { token, refresh });
    return row;
  }

  /**
   * Refreshes copies that exist in Redis. The script creates no missing copy, because it gets an empty fill ticket. A
   * refresh also invalidates pending fill tickets.
   */
  async #rewrite(kind: Kind<unknown>, ids: readonly number[]): Promise<void> {
    const how = { token: '', refresh: true };
    const known = await kind.loadMany?.(this.#context.db, ids);
    const one = async (id: number) => {
      const row = known ? known.get(id) : await kind.load(this.#context.db, id, 0);
      if (row) await this.#copy(kind, id, 0, row, how);
    };
    await Promise.all(ids.map(one));
  }

  /** Removes many copies, with one call per partition. The next read of a record loads it from Postgres. */
  async forgetMany(subject: ControlSubject, ids: readonly number[]): Promise<void> {
    const kind = kinds[subject] as Kind<unknown>;
    const copies = groupBy(
      ids.map((id) => this.#keysOf(kind, id, 0)),
      ({ partition }) => partition,
    );
    const all = [...copies].map(([partition, own]) => {
      const entries = own.flatMap(({ keys: { record, ticket } }) => [record, ticket]);
      return this.#context.scripts.call('control/forget', partition, { entries }, {});
    });
    await Promise.all(all);
  }

  /**
   * Returns a record, or null if it does not exist. Reads the copy in Redis. If there is no copy, loads the row from
   * Postgres and creates the copy, unless Redis is full.
   */
  async read<S extends ControlSubject>(subject: S, id: number, other = 0): Promise<Value<S> | null> {
    const kind = kinds[subject] as Kind<unknown>;
    const found = await this.#readCopy(kind, id, other);
    if (found.status === 'ok') {
      const fields = unpack<unknown[]>(found.bytes).slice(headElements);
      return kind.read(fields, id, this.#context.time.now()) as never;
    }
    const { db, scripts, keys } = this.#context;
    const row = scripts.isFull(keys.partitions.of(id))
      ? await kind.load(db, id, other)
      : await this.#write(kind, id, other, found.ticket, false);
    return (row && kind.read(row.fields, id, this.#context.time.now())) as never;
  }

  /** Creates a copy that a script found missing, even if Redis is full. */
  async fill(subject: ControlSubject, id: number, other: number = 0) {
    const kind = kinds[subject] as Kind<unknown>;
    const found = await this.#readCopy(kind, id, other);
    if (found.status !== 'ok') await this.#write(kind, id, other, found.ticket, false);
  }

  /** Replaces an older copy with the current row. */
  async refresh(subject: ControlSubject, id: number, other: number = 0) {
    const kind = kinds[subject] as Kind<unknown>;
    // Creates a missing copy only with a fill ticket. Otherwise a refresh that arrives late could restore an old state.
    const found = await this.#readCopy(kind, id, other);
    await this.#write(kind, id, other, found.status === 'ok' ? '' : found.ticket, true);
  }

  /** Refreshes many copies. Does not create missing copies. */
  async refreshMany(subject: ControlSubject, ids: readonly number[]) {
    const kind = kinds[subject] as Kind<unknown>;
    for (const piece of piecesOf(ids, refreshesMax)) await this.#rewrite(kind, piece);
  }

  /** Removes a copy, whatever its version, for a revocation. The next read of the record loads it from Postgres. */
  forget(subject: ControlSubject, id: number): Promise<void> {
    return this.forgetMany(subject, [id]);
  }
}
