/** Tests interface §§2-4 and 6-8 over HTTP, on one Redis: all rows on hot data, and a few of them on evicted data. */
import { freshRedis } from '../support/servers.js';
import { runTable } from './table.js';

runTable('one Redis', freshRedis, 12);
