import type { Method } from '../../server/method.js';
import { getChatMemberCount } from './getChatMemberCount.js';

/** The former name of getChatMemberCount. Telegraf still calls it. */
export const getChatMembersCount: Method = {
  ...getChatMemberCount,
  name: 'getChatMembersCount',
  summary: 'Does the same as getChatMemberCount. Some libraries still use this former name.',
};
