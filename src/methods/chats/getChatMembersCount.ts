import type { Method } from '../../server/method.js';
import { getChatMemberCount } from './getChatMemberCount.js';

/** Counts the members of a chat under the former name of getChatMemberCount. Telegraf still calls it. */
export const getChatMembersCount: Method = {
  ...getChatMemberCount,
  name: 'getChatMembersCount',
  summary: 'Does the same as getChatMemberCount. Some libraries still use this former name.',
};
