/** Tests that killed pollers, streams and fronts lose no update. */
import { testKills } from './killed_consumers.js';

testKills([
  ['pollers', {}],
  ['pollers and streams', { streams: 'half' }],
  ['a stream', { pollers: 1, streams: 'alone' }],
  ['streams', { streams: 'all' }],
]);
