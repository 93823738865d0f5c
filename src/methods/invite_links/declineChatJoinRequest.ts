import type { Method } from '../../server/method.js';
import { decisionMethod } from './approveChatJoinRequest.js';

export const declineChatJoinRequest: Method = decisionMethod({
  name: 'declineChatJoinRequest',
  summary: 'Declines a request to join a group or channel. The declined person may ask to join again.',
  decision: 'decline',
});
