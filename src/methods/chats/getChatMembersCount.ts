import type { Method } from '../../server/method.js';
import { getChatMemberCount } from './getChatMemberCount.js';

/** The former name of getChatMemberCount, which Telegraf still calls. */
export const getChatMembersCount: Method = {
  ...getChatMemberCount,
  name: 'getChatMembersCount',
  summary: 'Former name of getChatMemberCount, which some libraries still use.',
};
