/** Interface §§2-4 and 6-8 over HTTP, on one Redis. */
import { freshRedis } from '../support/servers.js';
import { runTable } from './table.js';

runTable('one Redis', freshRedis);
