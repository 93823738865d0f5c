/** Tests interface §§2-4 and 6-8 over HTTP, on one Redis: all rows on hot and on evicted data. */
import { freshRedis } from '../support/servers.js';
import { runTable } from './table.js';

runTable('one Redis', freshRedis);
