/**
 * Helpers for scenarios about messages in one chat: they read the chat's history, and name the fields that must be
 * equal on the service and on the comparison server.
 */
import { call, type Pair } from '../../src/loadtest/client.js';
import type { Message } from '../service/population.js';
import type { Service } from '../service/service.js';

export const labels = ['floor', 'service'] as const;

export const recent = (seconds: number | undefined) => Math.abs(Date.now() / 1000 - (seconds ?? 0)) < 60;

export const historyOf = async (service: Service, { bot, user }: Pair, limit: number): Promise<Message[]> => {
  const path = `/api/chats/${bot.id}/messages?limit=${limit}`;
  const page = await call<{ items: Message[] }>(`${service.front.baseUrl}${path}`, { token: user.token });
  return page.items;
};

/** Returns the fields of a message that are the same for every call. */
export const shapeOf = ({ message_id: _, date: __, edit_date, text: ___, ...rest }: Message) => ({
  ...rest,
  edited: edit_date !== undefined,
});
