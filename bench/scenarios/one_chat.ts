/**
 * Contains helpers for scenarios about messages in one chat. The helpers read the history of the chat, and name the
 * fields that must be equal on both sides.
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

/** The fields of a message that do not change from call to call. */
export const shapeOf = ({ message_id: _, date: __, edit_date, text: ___, ...rest }: Message) => ({
  ...rest,
  edited: edit_date !== undefined,
});
