import type { Method } from '../../server/method.js';
import { getChatMemberCount } from './getChatMemberCount.js';

/** The former name of getChatMemberCount. Telegraf still calls it. */
export const getChatMembersCount: Method = {
  ...getChatMemberCount,
  name: 'getChatMembersCount',
  summary: 'The former name of getChatMemberCount, which some libraries still use.',
};
