/** Which public chat a username names: a copy in Redis, in a partition that follows from the name. */
import { loadChat } from '../postgres/chats.js';
import { findName } from '../postgres/users.js';
import { clusterSlot } from '../redis/slots.js';
import { usernameKey } from '../rules/usernames.js';
import { pack, unpack } from './codec.js';
import { type StoreContext, uniqueText } from './context.js';
import { type ChatRef, sharedChat } from './keys.js';

export interface Names {
  /** The public group or channel that has this username, without `@`; a call of a bot asks on its way. */
  find(username: string): Promise<ChatRef | null>;
  /** Copies the username of a chat. */
  refresh(chat: number): Promise<void>;
}

/** Version, incarnation and the chat's id. */
const elements = 3;

export function createNames({ db, scripts, keys, hotTtlMs }: StoreContext): Names {
  function at(name: string) {
    const partition = clusterSlot(name) % keys.partitions.count;
    const record = keys.name(partition, name);
    return { partition, keys: { meta: keys.meta(partition), record, ticket: keys.ticket(record) } };
  }

  /** Names that nobody has, or a person or bot, are kept as 0, so that asking again costs no round trip to Postgres. */
  async function load(name: string): Promise<{ readonly version: number; readonly id: number }> {
    const id = await findName(db, name);
    const chat = id !== null && id < 0 ? await loadChat(db, id) : null;
    return chat && !chat.private ? { version: chat.version, id: chat.id } : { version: 0, id: 0 };
  }

  async function write(name: string, ticket: string, refresh: boolean): Promise<number> {
    const { version, id } = await load(name);
    const place = at(name);
    await scripts.call(
      'control/write',
      place.partition,
      // Nobody listens for names.
      { ...place.keys, channel: `${place.keys.record}:changed` },
      { token: ticket, refresh, version, fields: pack(id), count: elements, ttl_ms: hotTtlMs },
    );
    return id;
  }

  const read = (name: string) => {
    const place = at(name);
    return scripts.call('control/read', place.partition, place.keys, {
      token: uniqueText(),
      ttl_ms: hotTtlMs,
    });
  };

  return {
    async find(username) {
      const name = usernameKey(username);
      const found = await read(name);
      const id =
        found.status === 'ok'
          ? unpack<number[]>(found.bytes)[elements - 1]
          : await write(name, found.ticket, false);
      return id ? sharedChat(id) : null;
    },
    async refresh(chat) {
      const row = await loadChat(db, chat);
      if (!row?.username) return;
      const name = usernameKey(row.username);
      const found = await read(name);
      await write(name, found.status === 'ok' ? '' : found.ticket, true);
    },
  };
}
