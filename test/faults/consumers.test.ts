/** Runs the short form of `consumers.long.test.ts` and `killed_consumers.long.test.ts`: two pollers and two streams. */
import { testKills } from './killed_consumers.js';

testKills([['pollers and streams', { streams: 'half' }]]);
