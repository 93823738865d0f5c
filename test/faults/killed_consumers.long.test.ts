/** Tests that killed pollers, streams and fronts lose no update. `consumers.test.ts` kills pollers and streams together. */
import { testKills } from './killed_consumers.js';

testKills([
  ['pollers', {}],
  ['a stream', { pollers: 1, streams: 'alone' }],
  ['streams', { streams: 'all' }],
]);
