/**
 * Provides a store with the management bot. Tests handle the updates of this bot directly, so that they can repeat or
 * interrupt the handling.
 */
import { managementIdentity } from '../../src/manage/identity.js';
import { Manager } from '../../src/manage/manager.js';
import { noticeMessage } from '../../src/manage/notices.js';
import type { Profile } from '../../src/store/core/codec.js';
import { directChat } from '../../src/store/core/keys.js';
import { readUpdate, type UpdateEntry } from '../../src/store/updates/queues.js';
import {
  makeUser,
  type Person,
  startCluster,
  type TestCluster,
  type TestNode,
  text,
} from '../support/store.js';

export interface World {
  readonly cluster: TestCluster;
  readonly node: TestNode;
  readonly manager: Manager;
  readonly errors: unknown[];
  person(): Promise<Person & { readonly username: string }>;
  /** Sends a text, or presses a button on a message. Returns the update for the bot. */
  said(who: Person, words: string): Promise<UpdateEntry>;
  pressed(who: Person, messageId: number, data: string): Promise<UpdateEntry>;
  tell(): Promise<void>;
  /** Returns the messages from the bot to a person, oldest first, with the callback data of their buttons. */
  written(who: Person): Promise<Written[]>;
  close(): Promise<void>;
}

export interface Written {
  readonly id: number;
  readonly text: string;
  readonly data: readonly string[];
}

export async function startManager(): Promise<World> {
  const cluster = await startCluster();
  const node = await cluster.node();
  const { store } = node;
  const bot = await store.management.ensure(managementIdentity('petrelbot'));
  const errors: unknown[] = [];
  const manager = new Manager({ store, bot, onError: (error) => errors.push(error) });
  const latest = async () => {
    const rows = await node.connection.client.xrevrangeBuffer(cluster.keys.queue(bot), '+', '-', 'COUNT', 1);
    return readUpdate(rows[0]);
  };
  return {
    ...{ cluster, node, manager, errors },
    async person() {
      const made = await makeUser(node);
      await store.chats.openDirect(bot, made.id);
      const user = await store.users.find(made.id);
      return { ...made, username: user?.username ?? '' };
    },
    async said(who, words) {
      await store.messages.send(directChat(bot, who.id), who.sender, text(words));
      return latest();
    },
    async pressed(who, messageId, data) {
      const profile: Profile = who.sender.profile;
      await store.callbacks.press(directChat(bot, who.id), profile, messageId, data);
      return latest();
    },
    async tell() {
      const profile = await store.bots.profile(bot, null);
      if (profile) await store.notices.sendDue(async () => profile, noticeMessage);
    },
    async written(who) {
      const list = (await store.history.list(directChat(bot, who.id), 0, 100)) ?? [];
      return list
        .filter(({ record }) => record.sender === bot)
        .map(({ id, record }) => ({
          id,
          text: record.content.text ?? '',
          data: (record.markup?.inline_keyboard ?? []).flat().map((one) => one.callback_data ?? ''),
        }))
        .reverse();
    },
    close: () => cluster.close(),
  };
}
