/**
 * Joins the limits of all subjects for documents, scripts and tests. All other code imports the limits of one subject.
 * The name of each limit ends with its unit.
 */
import { conformanceLimits } from './conformance/limits.js';
import { deliveryLimits } from './delivery/limits.js';
import { devLimits } from './dev/limits.js';
import { fileLimits } from './files/limits.js';
import { httpLimits } from './http/limits.js';
import { identityLimits } from './identity/limits.js';
import { journalLimits } from './journal/limits.js';
import { leakLimits } from './leaks/limits.js';
import { loadtestLimits } from './loadtest/limits.js';
import { manageLimits } from './manage/limits.js';
import { postgresLimits } from './postgres/limits.js';
import { previewLimits } from './previews/limits.js';
import { processLimits } from './processes/limits.js';
import { pushLimits } from './push/limits.js';
import { redisLimits } from './redis/limits.js';
import { ruleLimits } from './rules/limits.js';
import { callLimits } from './server/limits.js';
import { storeLimits } from './store/limits.js';
import { testModeLimits } from './testmode/limits.js';
import { wireLimits } from './wire/limits.js';

export const limits = {
  ...conformanceLimits,
  ...deliveryLimits,
  ...devLimits,
  ...fileLimits,
  ...httpLimits,
  ...identityLimits,
  ...journalLimits,
  ...leakLimits,
  ...loadtestLimits,
  ...manageLimits,
  ...processLimits,
  ...postgresLimits,
  ...previewLimits,
  ...pushLimits,
  ...redisLimits,
  ...ruleLimits,
  ...callLimits,
  ...storeLimits,
  ...testModeLimits,
  ...wireLimits,
} as const;
