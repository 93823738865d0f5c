/**
 * Copies of control records in Redis. Postgres holds the truth; a copy is filled on a miss, under a ticket, and refreshed
 * by version after each committed change, by the process that made it or else by the sweep.
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

/** A row as it is copied. */
interface Image {
  readonly version: number;
  readonly fields: readonly unknown[];
}

interface Kind<T> {
  key(keys: Keys, id: number, other: number): string;
  /** Fields of the record, or null when there is no such thing. */
  load(sql: Sql, id: number, other: number): Promise<Image | null>;
  /** The same of many in one statement, by id, where many change at once. */
  loadMany?(sql: Sql, ids: readonly number[]): Promise<ReadonlyMap<number, Image>>;
  read(fields: readonly unknown[], id: number): T;
}

export interface Bot {
  readonly id: number;
  /** 0 for a deleted bot and for the management bot */
  readonly owner: number;
  readonly username: string;
  /** the default name, or where none was set the name at creation */
  readonly name: string;
  /** lookup value of the live token, base64; '' while it is blocked */
  readonly token: string;
  /** names that were set */
  readonly names: Texts;
  /** of a bot whose token is not accepted; the record of a deleted one stays for those who read what it wrote */
  readonly state?: 'suspended' | 'deleted' | undefined;
  /** What a method has made of this record and keeps with it, for as long as the record is remembered. Here rather than in a
   * table beside it: with many bots each look into a table is a wait for memory. */
  prepared?: unknown;
}

/** What a bot shows of itself besides its name. */
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
  /** lookup values of live tokens, base64 */
  readonly tokens: readonly string[];
  /** who may add them to groups and channels without asking */
  readonly addToGroups: 'everyone' | 'shared_chats' | 'nobody';
  /** of a person whose tokens are not accepted */
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

/** A webhook as it is kept: boxes are opened where they are needed. */
export interface SealedWebhook {
  readonly version: number;
  /** null while the bot polls */
  readonly url: Buffer | null;
  readonly secret: Buffer | null;
  /** PEM */
  readonly certificate: string | null;
  readonly maxConnections: number;
  readonly address: string | null;
  readonly signing: Buffer;
  readonly former: Buffer | null;
  /** ms */
  readonly formerUntil: number | null;
}

export type Commands = Readonly<
  Record<string, ReadonlyArray<{ readonly command: string; readonly description: string }>>
>;

/** What deleted bots are called. */
const deletedName = 'Deleted bot';

export function botOf(row: BotRow): Bot {
  const { id, username, name, names, suspended, deleted } = row;
  if (deleted)
    return { id, owner: 0, username: '', name: deletedName, token: '', names: {}, state: 'deleted' };
  // The management bot has neither: no person has the id 0, and no token the lookup value ''.
  const [owner, token] = [row.owner_id ?? 0, row.token ?? ''];
  return { id, owner, username, name, token, names, state: suspended ? 'suspended' : undefined };
}

function botImage(row: BotRow): Image {
  const { owner, username, name, token, names, state } = botOf(row);
  return { version: row.version, fields: [owner, username, name, token, names, state ?? ''] };
}

/** Whether the token of a bot leaked: it rests until it gets another. The management bot has none and needs none. */
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
  // A copy that was made before bots had texts has no names.
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
  // A copy that was made before people chose has no choice.
  read: (
    [externalId, firstName, lastName, username, languageCode, tokens, state = '', addToGroups = 'everyone'],
    id,
  ) =>
    ({
      ...{ id, externalId, firstName, lastName, username, languageCode, tokens, addToGroups },
      state: state || undefined,
    }) as User,
};

/** A person who never was a member gets a record too, so that asking again costs no round trip to Postgres. */
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
  // A copy that was made before bots had pictures has none.
  read: ([description, shortDescription, pictures = {}]) =>
    ({ description, shortDescription, pictures }) as Descriptions,
};

const webhook: Kind<SealedWebhook> = {
  key: (keys, id) => keys.webhook(id),
  async load(sql, id) {
    const row = await loadWebhook(sql, id);
    // A bot that never had one gets a record too: asking costs no round trip to Postgres.
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
  /** Reads a record: from its copy, or else from Postgres, leaving a copy unless Redis is full. Null when there is no such
   * thing. */
  read<S extends ControlSubject>(subject: S, id: number, other?: number): Promise<Value<S> | null>;
  /** Leaves the copy that a script missed, even while Redis is full. */
  fill(subject: ControlSubject, id: number, other?: number): Promise<void>;
  /** Copies the present row over an older copy. */
  refresh(subject: ControlSubject, id: number, other?: number): Promise<void>;
  /** The same of many; records that are absent stay so, and are read back when they are missed. */
  refreshMany(subject: ControlSubject, ids: readonly number[]): Promise<void>;
  /** Takes a copy away, whatever version it has: for what is revoked. It is read back when it is missed. */
  forget(subject: ControlSubject, id: number): Promise<void>;
  /** Takes the copies of many away, one call a partition: they are read back when they are missed. */
  forgetMany(subject: ControlSubject, ids: readonly number[]): Promise<void>;
}

/** Copies that are refreshed side by side. */
const refreshesMax = 250;

/** Elements that the script puts in front of the fields: version and incarnation. */
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

  /** Without a ticket an absent record is not written, and a fill that is under way is stopped. */
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
      // A record that is absent is written under a ticket too: a refresh that comes late must not bring back the past.
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
