/**
 * Copies of control records in Redis. Postgres is authoritative. A copy is created on a miss, with a fill ticket. After
 * each committed change it is refreshed by version, by the process that made the change or by the sweep.
 */

import { loadUser } from '../../postgres/accounts/users.js';
import { type BotRow, loadBot, loadBots, loadCommands, loadDescriptions } from '../../postgres/bots/bots.js';
import type { BotPictures } from '../../postgres/bots/pictures.js';
import { loadMember, loadUserChats, type MemberStatus } from '../../postgres/chats/chats.js';
import { loadAdministrators } from '../../postgres/chats/members.js';
import type { Sql } from '../../postgres/sql.js';
import { loadWebhook } from '../../postgres/webhooks/webhooks.js';
import type { Texts } from '../../rules/identity_texts.js';
import { pack, unpack } from './codec.js';
import { type StoreContext, uniqueText } from './context.js';
import type { Keys } from './keys.js';

/** A row in its copied form. */
interface Image {
  readonly version: number;
  readonly fields: readonly unknown[];
}

interface Kind<T> {
  key(keys: Keys, id: number, other: number): string;
  /** Loads the record's fields, or null if there is no such record. */
  load(sql: Sql, id: number, other: number): Promise<Image | null>;
  /** Loads several records in one statement, keyed by id. For kinds whose records often change together. */
  loadMany?(sql: Sql, ids: readonly number[]): Promise<ReadonlyMap<number, Image>>;
  read(fields: readonly unknown[], id: number): T;
}

export interface Bot {
  readonly id: number;
  /** the owner's id; 0 for a deleted bot and for the management bot */
  readonly owner: number;
  readonly username: string;
  /** the bot's default name; if none was set, its name at creation */
  readonly name: string;
  /** lookup value of the bot's valid token, base64; '' while the token is blocked */
  readonly token: string;
  /** the bot's names by language */
  readonly names: Texts;
  /** why the token is not accepted; a deleted bot keeps its record for readers of its messages */
  readonly state?: 'suspended' | 'deleted' | undefined;
  /**
   * Data that a method derived from this record, kept as long as the record is cached. Stored here rather than in a
   * separate map, because with many bots each map lookup is a cache miss.
   */
  prepared?: unknown;
}

/** A bot's descriptions and pictures. */
export interface Descriptions {
  readonly description: Texts;
  readonly shortDescription: Texts;
  readonly pictures: BotPictures;
}

export interface User {
  readonly id: number;
  readonly externalId: string;
  readonly firstName: string;
  readonly lastName: string | null;
  readonly username: string | null;
  readonly languageCode: string | null;
  /** lookup values of the person's valid tokens, base64 */
  readonly tokens: readonly string[];
  /** who may add the person to groups and channels without an invitation */
  readonly addToGroups: 'everyone' | 'shared_chats' | 'nobody';
  /** why the person's tokens are not accepted */
  readonly state?: 'suspended' | undefined;
}

export interface Member {
  readonly status: MemberStatus | 'none';
  readonly rights: Readonly<Record<string, boolean>>;
  readonly isBot: boolean;
}

export interface Administrator extends Member {
  readonly id: number;
}

export interface UserChats {
  readonly direct: readonly number[];
  readonly shared: readonly number[];
}

/** A webhook with its secrets still encrypted; they are decrypted where needed. */
export interface SealedWebhook {
  readonly version: number;
  /** encrypted URL of the webhook; null while the bot polls */
  readonly url: Buffer | null;
  readonly secret: Buffer | null;
  /** the webhook's certificate, in PEM */
  readonly certificate: string | null;
  readonly maxConnections: number;
  readonly address: string | null;
  readonly signing: Buffer;
  readonly former: Buffer | null;
  /** until when the former signing secret signs too, Unix time in ms */
  readonly formerUntil: number | null;
}

export type Commands = Readonly<
  Record<string, ReadonlyArray<{ readonly command: string; readonly description: string }>>
>;

/** The name shown for deleted bots. */
const deletedName = 'Deleted bot';

export function botOf(row: BotRow): Bot {
  const { id, username, name, names, suspended, deleted } = row;
  if (deleted)
    return { id, owner: 0, username: '', name: deletedName, token: '', names: {}, state: 'deleted' };
  // The management bot has no owner and no token: no person has id 0, and no token has the lookup value ''.
  const [owner, token] = [row.owner_id ?? 0, row.token ?? ''];
  return { id, owner, username, name, token, names, state: suspended ? 'suspended' : undefined };
}

function botImage(row: BotRow): Image {
  const { owner, username, name, token, names, state } = botOf(row);
  return { version: row.version, fields: [owner, username, name, token, names, state ?? ''] };
}

/**
 * Whether a bot's leaked token is blocked. Deliveries then pause until there is a new one. The management bot never has
 * a token.
 */
export const isBlocked = (bot: Bot | null): boolean => bot !== null && bot.token === '' && bot.owner !== 0;

const bot: Kind<Bot> = {
  key: (keys, id) => keys.bot(id),
  async load(sql, id) {
    const row = await loadBot(sql, id);
    return row && botImage(row);
  },
  async loadMany(sql, ids) {
    return new Map((await loadBots(sql, ids)).map((row) => [row.id, botImage(row)]));
  },
  // Older releases stored copies without `names`.
  read: ([owner, username, name, token, names = {}, state = ''], id) =>
    ({ id, owner, username, name, token, names, state: state || undefined, prepared: undefined }) as Bot,
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
        ],
      }
    );
  },
  // Older releases stored copies without `addToGroups`.
  read: (
    [externalId, firstName, lastName, username, languageCode, tokens, state = '', addToGroups = 'everyone'],
    id,
  ) =>
    ({
      ...{ id, externalId, firstName, lastName, username, languageCode, tokens, addToGroups },
      state: state || undefined,
    }) as User,
};

/** A member of a group or channel. Non-members get a record too, so that repeated checks do not query Postgres. */
const member: Kind<Member> = {
  key: (keys, chat, who) => keys.member(chat, who),
  async load(sql, chat, who) {
    const row = await loadMember(sql, chat, who);
    return row
      ? { version: row.version, fields: [row.status, row.rights, row.is_bot] }
      : { version: 0, fields: ['none', {}, false] };
  },
  read: ([status, rights, isBot]) => ({ status, rights, isBot }) as Member,
};

const administrators: Kind<readonly Administrator[]> = {
  key: (keys, chat) => keys.administrators(chat),
  async load(sql, chat) {
    const found = await loadAdministrators(sql, chat);
    const list = found?.rows.map((row) => [row.member_id, row.status, row.rights, row.is_bot]);
    return found && { version: found.version, fields: [list] };
  },
  read: ([list]) =>
    (list as Array<[number, Member['status'], Member['rights'], boolean]>).map(
      ([id, status, rights, isBot]) => ({ id, status, rights, isBot }),
    ),
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
    return row && { version: row.version, fields: [row.descriptions, row.short_descriptions, row.pictures] };
  },
  // Older releases stored copies without `pictures`.
  read: ([description, shortDescription, pictures = {}]) =>
    ({ description, shortDescription, pictures }) as Descriptions,
};

const webhook: Kind<SealedWebhook> = {
  key: (keys, id) => keys.webhook(id),
  async load(sql, id) {
    const row = await loadWebhook(sql, id);
    // Bots without a webhook get a record too, so that repeated checks do not query Postgres.
    if (!row) return { version: 0, fields: [0, null] };
    const { url_box, secret_box, certificate, max_connections, ip_address } = row;
    const { signing_box, former_signing_box, former_until } = row;
    const fields = [row.version, url_box, secret_box, certificate, max_connections, ip_address];
    return { version: row.copy_version, fields: [...fields, signing_box, former_signing_box, former_until] };
  },
  read: ([version, url, secret, certificate, maxConnections, address, signing, former, formerUntil]) =>
    ({
      ...{ version, url, secret, certificate, maxConnections, address },
      ...{ signing, former, formerUntil },
    }) as SealedWebhook,
};

const kinds = { bot, user, member, administrators, chats, commands, descriptions, webhook };
export type ControlSubject = keyof typeof kinds;
type Value<S extends ControlSubject> = ReturnType<(typeof kinds)[S]['read']>;

export interface ControlCopies {
  /**
   * Reads a record from its copy, or else from Postgres. A copy is then stored unless Redis is full. Null if there is
   * no such record.
   */
  read<S extends ControlSubject>(subject: S, id: number, other?: number): Promise<Value<S> | null>;
  /** Stores the copy that a script found missing, even if Redis is full. */
  fill(subject: ControlSubject, id: number, other?: number): Promise<void>;
  /** Replaces an older copy by the current row. */
  refresh(subject: ControlSubject, id: number, other?: number): Promise<void>;
  /** Refreshes many copies. Missing copies are not created. */
  refreshMany(subject: ControlSubject, ids: readonly number[]): Promise<void>;
  /** Removes a copy regardless of its version, for revocations. The next miss reads the record again. */
  forget(subject: ControlSubject, id: number): Promise<void>;
  /** Removes many copies, with one call per partition. The next miss reads each record again. */
  forgetMany(subject: ControlSubject, ids: readonly number[]): Promise<void>;
}

/** Number of copies refreshed in parallel. */
const refreshesMax = 250;

/** Array elements before the fields: version and incarnation. */
const headElements = 2;

export function createControlCopies({ db, scripts, keys, hotTtlMs }: StoreContext): ControlCopies {
  const packFields = (fields: readonly unknown[]) => Buffer.concat(fields.map((field) => pack(field)));

  function keysOf(kind: Kind<unknown>, id: number, other: number) {
    const partition = keys.partitions.of(id);
    const record = kind.key(keys, id, other);
    return { partition, keys: { meta: keys.meta(partition), record, ticket: keys.ticket(record) } };
  }

  function readCopy(kind: Kind<unknown>, id: number, other: number) {
    const at = keysOf(kind, id, other);
    return scripts.call('control/read', at.partition, at.keys, { token: uniqueText(), ttl_ms: hotTtlMs });
  }

  async function copy(
    kind: Kind<unknown>,
    id: number,
    other: number,
    row: Image,
    how: { readonly token: string; readonly refresh: boolean },
  ): Promise<void> {
    const at = keysOf(kind, id, other);
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

  async function write(kind: Kind<unknown>, id: number, other: number, token: string, refresh: boolean) {
    const row = await kind.load(db, id, other);
    if (row) await copy(kind, id, other, row, { token, refresh });
    return row;
  }

  /**
   * Refreshes copies that exist. An empty token never creates a missing copy, and the refresh invalidates pending
   * fill tickets.
   */
  async function rewrite(kind: Kind<unknown>, ids: readonly number[]): Promise<void> {
    const how = { token: '', refresh: true };
    const known = await kind.loadMany?.(db, ids);
    const one = async (id: number) => {
      const row = known ? known.get(id) : await kind.load(db, id, 0);
      if (row) await copy(kind, id, 0, row, how);
    };
    await Promise.all(ids.map(one));
  }

  async function forgetMany(subject: ControlSubject, ids: readonly number[]): Promise<void> {
    const kind = kinds[subject] as Kind<unknown>;
    const byPartition = new Map<number, string[]>();
    for (const id of ids) {
      const { partition, keys: at } = keysOf(kind, id, 0);
      const entries = byPartition.get(partition);
      if (entries === undefined) byPartition.set(partition, [at.record, at.ticket]);
      else entries.push(at.record, at.ticket);
    }
    const all = [...byPartition].map(([partition, entries]) =>
      scripts.call('control/forget', partition, { entries }, {}),
    );
    await Promise.all(all);
  }

  return {
    async read(subject, id, other = 0) {
      const kind = kinds[subject] as Kind<unknown>;
      const found = await readCopy(kind, id, other);
      if (found.status === 'ok') {
        const fields = unpack<unknown[]>(found.bytes).slice(headElements);
        return kind.read(fields, id) as never;
      }
      const row = scripts.isFull(keys.partitions.of(id))
        ? await kind.load(db, id, other)
        : await write(kind, id, other, found.ticket, false);
      return (row && kind.read(row.fields, id)) as never;
    },
    async fill(subject, id, other = 0) {
      const kind = kinds[subject] as Kind<unknown>;
      const found = await readCopy(kind, id, other);
      if (found.status !== 'ok') await write(kind, id, other, found.ticket, false);
    },
    async refresh(subject, id, other = 0) {
      const kind = kinds[subject] as Kind<unknown>;
      // A missing record is written with a ticket too, so that a late refresh cannot restore an old state.
      const found = await readCopy(kind, id, other);
      await write(kind, id, other, found.status === 'ok' ? '' : found.ticket, true);
    },
    async refreshMany(subject, ids) {
      const kind = kinds[subject] as Kind<unknown>;
      for (let at = 0; at < ids.length; at += refreshesMax)
        await rewrite(kind, ids.slice(at, at + refreshesMax));
    },
    forget: (subject, id) => forgetMany(subject, [id]),
    forgetMany,
  };
}
